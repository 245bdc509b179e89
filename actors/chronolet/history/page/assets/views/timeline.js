"use strict";
// The timeline: a lane for each object, with bars for its states and ticks for its entries. Only visible lanes exist.
// Input: the page's state. Output: the moment, the selection, and what is expanded. Next: main.js.

class Timeline {
  /** @param {PageState} state */
  constructor(state) {
    this.state = state;
    this.drawing = new Drawing(state.model, state.window);
    this.overviewCounts = new Overview(state.model);
    this.scroller = byId("lanes");
    this.spacer = byId("lanes-height");
    this.labels = byId("lane-labels");
    this.canvas = /** @type {HTMLCanvasElement} */ (byId("lane-canvas"));
    this.axis = /** @type {HTMLCanvasElement} */ (byId("axis"));
    this.overview = /** @type {HTMLCanvasElement} */ (byId("overview"));
    this.onlyExisting = /** @type {HTMLInputElement} */ (byId("only-existing"));
    this.rowHeight = matchMedia("(pointer: coarse)").matches ? 36 : 24;
    /** @type {Lane[]} */
    this.lanes = [];
    this.active = "";
    /** What was drawn last. */
    this.drawn = "";
    /** What the visible lanes depend on. */
    this.key = "";
    /** The selected object when the timeline was last drawn. */
    this.seen = -1;
    this.scroller.addEventListener("scroll", () => state.changed(), { passive: true });
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    this.labels.addEventListener("click", (event) => this.onLabel(event));
    this.onlyExisting.addEventListener("change", () => state.changed());
    byId("expand-all").addEventListener("click", () => this.setAll(true));
    byId("collapse-all").addEventListener("click", () => this.setAll(false));
    new ResizeObserver(() => state.changed()).observe(this.scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.drawing.colours = readColours();
      state.changed();
    });
    new Gestures(state, this.canvas, (y) => this.select(this.laneAt(y)));
    new Gestures(state, this.axis, () => {});
    this.overview.addEventListener("pointerdown", (event) => this.onOverview(event));
    this.overview.addEventListener("pointermove", (event) => event.buttons && this.onOverview(event));
    state.listen(() => this.render());
  }

  /** @param {boolean} expanded */
  setAll(expanded) {
    this.state.lanes.setAll(expanded);
    this.state.changed();
  }

  render() {
    this.findLanes();
    const height = this.lanes.length * this.rowHeight;
    if (this.spacer.style.height !== `${height}px`) this.spacer.style.height = `${height}px`;
    this.showSelection();
    if (!this.isChanged()) return;
    const first = Math.floor(this.scroller.scrollTop / this.rowHeight);
    const count = Math.ceil(this.scroller.clientHeight / this.rowHeight) + 1;
    const shown = this.lanes.slice(first, first + count);
    const shift = first * this.rowHeight - this.scroller.scrollTop;
    this.renderLabels(shown, first, shift);
    this.draw(shown, shift);
  }

  /** Find the visible lanes, if they may have changed: there may be tens of thousands. */
  findLanes() {
    const { lanes, search, moment } = this.state;
    const key = `${lanes.version} ${search.run} ${this.onlyExisting.checked ? moment.index : ""}`;
    if (key === this.key) return;
    this.key = key;
    this.lanes = lanes.visible(this.filter());
  }

  /** Return whether anything that the timeline shows has changed since the last call. */
  isChanged() {
    const { state, scroller } = this;
    const size = `${scroller.scrollTop} ${scroller.offsetWidth} ${scroller.clientHeight}`;
    const shown = `${state.window.from} ${state.window.to} ${state.timeOfMoment()} ${state.object} ${this.active}`;
    const drawn = `${this.key} ${size} ${shown} ${state.moment.index} ${this.drawing.colours.text}`;
    const changed = drawn !== this.drawn;
    this.drawn = drawn;
    return changed;
  }

  /** Scroll to the selected object's lane when it was selected elsewhere. */
  showSelection() {
    const { object } = this.state;
    if (object !== this.seen) {
      this.seen = object;
      this.active = object < 0 ? this.active : `o${object}`;
      this.reveal(this.lanes.findIndex((one) => one.id === this.active));
    }
    if (!this.active && this.lanes.length) this.active = this.lanes[0].id;
  }

  filter() {
    const { search, model, moment } = this.state;
    const existing = this.onlyExisting.checked;
    if (!search.active && !existing) return null;
    return (/** @type {number} */ object) => {
      if (search.active && !search.hits[object]) return false;
      const { table, number } = model.tableOf(object);
      return !existing || table.rowAt(number, moment.index) >= 0;
    };
  }

  /**
   * @param {Lane[]} shown
   * @param {number} first
   * @param {number} shift
   */
  renderLabels(shown, first, shift) {
    while (this.labels.children.length > shown.length) this.labels.lastElementChild?.remove();
    while (this.labels.children.length < shown.length) {
      this.labels.append(
        make(
          "div",
          { class: "label", role: "treeitem" },
          make("span", { class: "twisty", "aria-hidden": "true" }),
          make("span", { class: "name" }),
        ),
      );
    }
    shown.forEach((lane, at) =>
      this.fillLabel(/** @type {HTMLElement} */ (this.labels.children[at]), lane, first + at),
    );
    this.labels.style.transform = `translateY(${shift}px)`;
    const active = shown.some((one) => one.id === this.active) ? `lane-${this.active}` : "";
    if (active) this.scroller.setAttribute("aria-activedescendant", active);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  /**
   * @param {HTMLElement} label
   * @param {Lane} lane
   * @param {number} at its index
   */
  fillLabel(label, lane, at) {
    const selected = lane.object >= 0 && lane.object === this.state.object;
    const active = lane.id === this.active;
    const spoken = this.spoken(lane);
    const shown = `${lane.id} ${lane.expanded} ${selected} ${active} ${at} ${lane.place} ${lane.siblings} ${spoken}`;
    if (label.dataset.shown === shown) return;
    label.dataset.shown = shown;
    label.dataset.at = String(at);
    label.id = `lane-${lane.id}`;
    label.style.height = `${this.rowHeight}px`;
    label.style.paddingLeft = `${4 + lane.depth * 12}px`;
    label.classList.toggle("heading", lane.object < 0);
    label.classList.toggle("active", active);
    label.title = lane.text;
    const of = { posinset: lane.place, setsize: lane.siblings };
    const attributes = { level: lane.depth + 1, selected, ...of, label: spoken };
    for (const [name, value] of Object.entries(attributes)) label.setAttribute(`aria-${name}`, String(value));
    if (lane.expanded === null) label.removeAttribute("aria-expanded");
    else label.setAttribute("aria-expanded", String(lane.expanded));
    label.children[0].textContent = lane.expanded === null ? "" : lane.expanded ? "▾" : "▸";
    label.children[1].textContent = lane.text;
  }

  /** @param {Lane} lane */
  spoken(lane) {
    if (lane.object < 0) return lane.text;
    const { table, number } = this.state.model.tableOf(lane.object);
    const row = table.rowAt(number, this.state.moment.index);
    return `${table.name} ${lane.text}: ${row < 0 ? "does not exist" : LOOKS[table.look[row]]}`;
  }

  /**
   * @param {Lane[]} shown
   * @param {number} shift
   */
  draw(shown, shift) {
    const { drawing, state, rowHeight } = this;
    const gutter = this.scroller.offsetWidth - this.scroller.clientWidth;
    byId("timeline").style.setProperty("--gutter", `${gutter}px`); // the scroll bar's width, so that times are in line
    this.canvas.style.width = `${this.scroller.clientWidth - this.labels.offsetWidth}px`;
    this.canvas.style.height = `${this.scroller.clientHeight}px`;
    const { context, width, height } = cleared(this.canvas);
    shown.forEach((lane, at) => {
      const box = { top: shift + at * rowHeight, height: rowHeight, width };
      context.fillStyle = drawing.colours.stripe;
      if (lane.object < 0 || lane.object === state.object) context.fillRect(0, box.top, width, rowHeight);
      if (lane.object < 0) return;
      drawing.rows(context, lane.object, box);
      const drawn = lane.expanded ? [lane.object] : state.lanes.family(lane.object);
      for (const one of drawn) drawing.ticks(context, one, box);
    });
    const x = state.window.x(state.timeOfMoment(), width);
    context.fillStyle = drawing.colours.moment;
    context.fillRect(Math.min(width - 2, Math.max(0, x - 1)), 0, 2, height);
    const axis = cleared(this.axis);
    drawing.axis(axis.context, axis.width, axis.height);
    const overview = cleared(this.overview);
    drawing.overview(overview.context, overview.width, overview.height, this.overviewCounts);
  }

  /** @param {number} y in pixels from the top of the canvas */
  laneAt(y) {
    return Math.floor((this.scroller.scrollTop + y) / this.rowHeight);
  }

  /** @param {number} at */
  select(at) {
    const lane = this.lanes[at];
    if (!lane) return;
    this.active = lane.id;
    if (lane.object >= 0) {
      this.seen = lane.object; // its lane is visible already
      this.state.select(lane.object);
    } else this.state.changed();
  }

  /** @param {MouseEvent} event */
  onLabel(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const label = /** @type {HTMLElement | null} */ (target.closest(".label"));
    const at = label ? Number(label.dataset.at) : -1;
    if (!this.lanes[at]) return;
    if (target.classList.contains("twisty") || this.lanes[at].object < 0) this.toggle(this.lanes[at]);
    this.select(at);
  }

  /** @param {Lane} lane */
  toggle(lane, expanded = !lane.expanded) {
    if (lane.expanded === null) return;
    this.state.lanes.setExpanded(lane.id, expanded);
    this.state.changed();
  }

  /** @param {number} at */
  reveal(at) {
    if (at < 0) return;
    const [top, height] = [at * this.rowHeight, this.scroller.clientHeight];
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowHeight > this.scroller.scrollTop + height)
      this.scroller.scrollTop = top + this.rowHeight - height;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    this.findLanes(); // the key before may have opened or closed one
    const at = this.lanes.findIndex((one) => one.id === this.active);
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.lanes.length,
      End: this.lanes.length,
    };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    const lane = this.lanes[at];
    if (step !== undefined) this.go(Math.max(0, Math.min(this.lanes.length - 1, at + step)));
    else if (lane && event.key === "ArrowRight") this.open(at);
    else if (lane && event.key === "ArrowLeft") this.close(at);
    else if (lane && (event.key === "Enter" || event.key === " ")) this.select(at);
    else return;
    event.preventDefault();
  }

  /** Open a lane, or go to the first one in it. @param {number} at */
  open(at) {
    const [lane, next] = this.lanes.slice(at, at + 2);
    if (!lane.expanded) this.toggle(lane, true);
    else if (next && next.depth > lane.depth) this.go(at + 1);
  }

  /** Close a lane, or go to the one that it belongs to. @param {number} at */
  close(at) {
    if (this.lanes[at].expanded) return this.toggle(this.lanes[at], false);
    let parent = at - 1;
    while (parent >= 0 && this.lanes[parent].depth >= this.lanes[at].depth) parent--;
    if (parent >= 0) this.go(parent);
  }

  /** @param {number} at */
  go(at) {
    this.reveal(at);
    this.select(at);
  }

  /** @param {PointerEvent} event */
  onOverview(event) {
    const { window } = this.state;
    const share = event.offsetX / this.overview.clientWidth;
    const time = window.first + share * (window.last - window.first);
    window.move(time - (window.from + window.to) / 2);
    this.state.setMoment(this.state.model.momentOf(Math.round(time)));
  }
}
