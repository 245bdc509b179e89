"use strict";
// The slider and the buttons of the moment. The slider covers the visible window of time.
// Input: the page's state. Output: its moment and window. Next: main.js.

class MomentBar {
  /** @param {PageState} state */
  constructor(state) {
    this.state = state;
    this.slider = /** @type {HTMLInputElement} */ (byId("slider"));
    this.shown = byId("moment");
    this.slider.addEventListener("input", () => state.setMoment(state.model.momentOf(Number(this.slider.value))));
    this.slider.addEventListener("keydown", (event) => this.onKey(event));
    const { window, model } = state;
    /** @type {{[id: string]: () => void}} */
    const actions = {
      previous: () => this.step(-1),
      next: () => this.step(1),
      "previous-warning": () => this.toWarning(-1),
      "next-warning": () => this.toWarning(1),
      first: () => state.setMoment(model.momentAt(0)),
      last: () => state.setMoment(model.momentAt(model.count - 1)),
      "zoom-in": () => this.zoom(2),
      "zoom-out": () => this.zoom(0.5),
      "zoom-all": () => this.show(window.first, window.last),
      earlier: () => this.show(window.from - window.length / 2, window.to - window.length / 2),
      later: () => this.show(window.from + window.length / 2, window.to + window.length / 2),
    };
    for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
    byId("go").addEventListener("submit", (event) => this.onGo(event));
    state.listen(() => this.render());
  }

  /** @param {number} factor */
  zoom(factor) {
    const { window } = this.state;
    const time = this.state.timeOfMoment();
    const middle = (window.from + window.to) / 2;
    window.zoom(factor, time >= window.from && time <= window.to ? time : middle);
    this.state.changed();
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  show(from, to) {
    this.state.window.set(from, to);
    this.state.changed();
  }

  /** @param {number} direction */
  step(direction) {
    this.state.setMoment(this.state.model.momentAt(this.state.moment.index + direction));
  }

  /** @param {1 | -1} direction */
  toWarning(direction) {
    const { model, moment } = this.state;
    let index = moment.index + direction;
    while (index >= 0 && index < model.count && model.severity[index] < 2) index += direction;
    if (index >= 0 && index < model.count) {
      this.state.setMoment(model.momentAt(index));
      this.state.select(model.about[index]);
    } else announce(`no ${direction > 0 ? "later" : "earlier"} warning`);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { state } = this;
    const { window, model } = state;
    const jump = (/** @type {number} */ share) =>
      state.setMoment(model.momentOf(Math.round(state.timeOfMoment() + share * window.length)));
    /** @type {{[key: string]: () => void}} */
    const actions = {
      ArrowLeft: () => this.step(-1),
      ArrowDown: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ArrowUp: () => this.step(1),
      PageDown: () => jump(-0.1),
      PageUp: () => jump(0.1),
      Home: () => state.setMoment(model.momentAt(0)),
      End: () => state.setMoment(model.momentAt(model.count - 1)),
      "+": () => this.zoom(2),
      "-": () => this.zoom(0.5),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** @param {Event} event */
  onGo(event) {
    event.preventDefault();
    const input = /** @type {HTMLInputElement} */ (byId("go-to"));
    const { moment, error } = momentNamed(this.state.model, input.value.trim());
    if (moment) this.state.setMoment(moment);
    else announce(error);
  }

  render() {
    const { window, moment, model } = this.state;
    this.slider.min = String(Math.floor(window.from));
    this.slider.max = String(Math.ceil(window.to));
    this.slider.value = String(this.state.timeOfMoment());
    const number = moment.index < 0 ? "before the first event" : `#${model.number[moment.index]}`;
    const text = `${utc(moment.now)} ${number}`;
    if (this.shown.textContent === text) return;
    const isFirst = !this.shown.textContent;
    this.shown.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
    if (isFirst) return; // a message about a link may be there
    announceSoon(() => `${text}. ${this.summary()}`);
  }

  summary() {
    const pods = this.state.model.tables.find((one) => one.name === "pod");
    if (!pods) return "";
    const rows = this.state.model.rows(pods, this.state.moment);
    const bad = rows.filter((one) => LOOKS[one.look] === "bad").length;
    return `${rows.length} pods${bad ? `, ${bad} with problems` : ""}`;
  }
}
