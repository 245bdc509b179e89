"use strict";
// The list of entries. Only visible rows exist. Input: the page's state, with what the search has found.
// Output: the moment and the selection. Next: main.js.

/** A sign and its name for each severity: the colour alone is not enough. @type {[string, string][]} */
const MARKS = [
  ["", ""],
  ["\u2022", "problem or retry"],
  ["!", "warning"],
];

class EntryList {
  /** @param {PageState} state */
  constructor(state) {
    this.state = state;
    this.scroller = byId("entries");
    this.spacer = byId("entries-height");
    this.list = byId("entry-rows");
    this.count = byId("entry-count");
    this.shown = byId("entry");
    this.position = new ScrollPosition();
    this.narrow = matchMedia("(max-width: 700px)"); // as in screens.css, where a row then has two lines
    this.coarse = matchMedia("(pointer: coarse)");
    this.resting = 0;
    this.index = -2;
    /** @type {Uint32Array | null | undefined} */
    this.found = undefined;
    state.search.texts.loaded = () => state.changed();
    state.search.texts.failed = (error) => announce(`texts of events are missing: ${error.message}`);
    this.scroller.addEventListener("scroll", () => this.onScroll(), { passive: true });
    this.scroller.addEventListener("scrollend", () => this.settle());
    for (const one of [this.narrow, this.coarse]) one.addEventListener("change", () => state.changed());
    this.scroller.addEventListener("keydown", (event) => this.onKey(event));
    byId("to-cause").addEventListener("click", () => this.toCause());
    this.list.addEventListener("click", (event) => this.onClick(event));
    new ResizeObserver(() => state.changed()).observe(this.scroller);
    state.listen(() => this.render());
  }

  get length() {
    return this.state.search.found ? this.state.search.found.length : this.state.model.count;
  }

  /** Return the index of the entry in a row. @param {number} row */
  entry(row) {
    return this.state.search.found ? this.state.search.found[row] : row;
  }

  /** Return the row of the moment's entry, or of the last one before it. */
  rowOfMoment() {
    const { moment, search } = this.state;
    return search.found ? firstAbove(search.found, moment.index) - 1 : moment.index;
  }

  onScroll() {
    if (Math.abs(this.scroller.scrollTop - this.position.top) < 1) return;
    this.position.scrolled(this.scroller.scrollTop);
    this.state.changed();
    if ("onscrollend" in window) return;
    clearTimeout(this.resting); // not every browser says when scrolling ends
    this.resting = setTimeout(() => this.settle(), 150);
  }

  /** Scroll the element to where the rows are, after small movements by rows. */
  settle() {
    this.position.top = this.position.topOf();
    if (Math.abs(this.scroller.scrollTop - this.position.top) >= 1) this.scroller.scrollTop = this.position.top;
  }

  render() {
    const { position, state } = this;
    if (!this.scroller.clientHeight) return; // in a panel that is not shown
    this.renderEntry();
    this.setRowHeight(this.narrow.matches ? 48 : this.coarse.matches ? 40 : 24);
    position.rows = this.length;
    position.view = this.scroller.clientHeight;
    this.spacer.style.height = `${position.height}px`;
    if (this.index !== state.moment.index || this.found !== state.search.found) {
      this.index = state.moment.index;
      this.found = state.search.found;
      position.reveal(Math.max(0, this.rowOfMoment()));
      this.scroller.scrollTop = position.top;
    }
    this.renderRows();
    const searching = state.search.progress < 1 ? `, ${Math.round(state.search.progress * 100)} % searched` : "";
    this.count.textContent = `${this.length} of ${state.model.count} events${searching}`;
  }

  /** Show the whole text of the moment's entry, which a row cuts. */
  renderEntry() {
    const { model, search, moment } = this.state;
    const { index } = moment;
    const cause = index < 0 ? "" : model.causeText(index);
    const parts =
      index < 0
        ? ["Before the first event."]
        : [
            `#${model.number[index]} ${utc(model.timeOf(index))}`,
            model.word("entity", index),
            model.word("type", index).replace(/@1$/, ""),
            cause && `<-${cause}`,
            search.texts.now(index) ?? "...",
          ];
    const text = parts.filter(Boolean).join(" ");
    if (this.shown.textContent !== text) this.shown.textContent = text;
  }

  /** @param {number} pixels */
  setRowHeight(pixels) {
    if (this.position.rowHeight === pixels) return;
    this.position.rowHeight = pixels;
    this.list.replaceChildren();
    this.index = -2; // so that the moment's row is visible again
  }

  renderRows() {
    const { position } = this;
    const first = Math.floor(position.offset / position.rowHeight);
    const count = Math.min(this.length - first, Math.ceil(position.view / position.rowHeight) + 1);
    while (this.list.children.length > Math.max(0, count)) this.list.lastElementChild?.remove();
    while (this.list.children.length < count) this.list.append(this.emptyRow());
    for (let at = 0; at < count; at++) this.fill(/** @type {HTMLElement} */ (this.list.children[at]), first + at);
    this.list.style.transform = `translateY(${first * position.rowHeight - position.offset}px)`;
    const current = this.rowOfMoment();
    if (current >= first && current < first + count)
      this.scroller.setAttribute("aria-activedescendant", `entry-${this.entry(current)}`);
    else this.scroller.removeAttribute("aria-activedescendant");
  }

  emptyRow() {
    const cells = ["time", "number", "what", "type", "detail"].map((name) => make("span", { class: name }));
    cells.unshift(make("span", { class: "mark", role: "img" }));
    const row = make("div", { class: "entry", role: "option" }, ...cells);
    row.style.height = `${this.position.rowHeight}px`;
    return row;
  }

  /**
   * @param {HTMLElement} element
   * @param {number} row
   */
  fill(element, row) {
    const { model, search, moment } = this.state;
    const index = this.entry(row);
    const text = search.texts.now(index);
    const cause = model.causeText(index);
    const [mark, label] = MARKS[model.severity[index]];
    const cells = [
      mark,
      utc(model.timeOf(index)).slice(0, 23).replace("T", " "),
      `#${model.number[index]}`,
      model.word("entity", index),
      model.word("type", index).replace(/@1$/, ""),
      `${cause ? `<-${cause} ` : ""}${text === null ? "..." : text}`,
    ];
    cells.forEach((cell, at) => {
      if (element.children[at].textContent !== cell) element.children[at].textContent = cell;
    });
    if (label) element.children[0].setAttribute("aria-label", label);
    else element.children[0].removeAttribute("aria-label");
    element.id = `entry-${index}`;
    element.dataset.row = String(row);
    element.dataset.severity = String(model.severity[index]);
    element.setAttribute("aria-selected", String(index === moment.index));
    element.setAttribute("aria-posinset", String(row + 1));
    element.setAttribute("aria-setsize", String(this.length));
  }

  /** Go to the entry that caused that of the moment. */
  toCause() {
    const { model, moment } = this.state;
    const number = moment.index < 0 ? 0 : model.causeOf(moment.index);
    const index = number ? model.indexOf(number) : -1;
    const origin = moment.index < 0 ? "" : model.word("origin", moment.index);
    const none = origin ? `its cause, ${origin}, is not an event before it` : "no event caused this one";
    if (index < 0) return announce(number ? `its cause, #${number}, is not in this page` : none);
    this.state.setMoment(model.momentAt(index));
    this.state.select(model.about[index]);
  }

  /** @param {number} row */
  go(row) {
    if (!this.length) return;
    const index = this.entry(Math.max(0, Math.min(this.length - 1, row)));
    this.state.setMoment(this.state.model.momentAt(index));
    this.state.select(this.state.model.about[index]);
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const row = /** @type {HTMLElement | null} */ (/** @type {HTMLElement} */ (event.target).closest(".entry"));
    if (row && row.dataset.row) this.go(Number(row.dataset.row));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.position.view / this.position.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.length, End: this.length };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (step === undefined) return;
    event.preventDefault();
    const before = this.state.search.found && this.rowOfMoment() < 0 && step < 0 ? 0 : this.rowOfMoment();
    this.go(before + step);
  }
}
