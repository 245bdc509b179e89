"use strict";
// What the page shows at present: the moment, the window of time, the selection, the search. Views listen to it.
// Input: changes by the views. Output: a call of each listener before the next frame.

class PageState {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.lanes = new Lanes(model);
    this.window = new TimeWindow(model.first, model.last);
    this.moment = model.momentOf(model.last);
    /** The selected object, by its number; -1: none. */
    this.object = -1;
    this.search = new Search(model);
    /** @type {(() => void)[]} */
    this.listeners = [];
    this.pending = false;
  }

  /** @param {() => void} listener */
  listen(listener) {
    this.listeners.push(listener);
  }

  changed() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => this.render());
  }

  render() {
    this.pending = false;
    for (const listener of this.listeners) listener();
  }

  /** @param {Moment} moment */
  setMoment(moment) {
    this.moment = moment;
    this.window.include(this.timeOfMoment());
    this.changed();
  }

  /** Return the time of the moment in the log's order, which is where it is on the time axis. */
  timeOfMoment() {
    const { index, now } = this.moment;
    return index < 0 ? now : Math.max(this.model.milliseconds[index], now + this.model.behind[index]);
  }

  /** @param {number} object */
  select(object) {
    this.object = object;
    if (object >= 0) this.lanes.reveal(object);
    this.changed();
  }

  /**
   * Return the index of the entry about an object (or one that belongs to it) next to the moment, in a direction.
   * @param {number} object
   * @param {1 | -1} direction
   * @param {number} least severity
   */
  neighbour(object, direction, least = 0) {
    const { order, starts, severity } = this.model;
    let best = -1;
    for (const one of this.lanes.family(object)) {
      let at = firstAbove(order, this.moment.index - (direction < 0 ? 1 : 0), starts[one], starts[one + 1]);
      if (direction < 0) at--;
      while (at >= starts[one] && at < starts[one + 1] && severity[order[at]] < least) at += direction;
      if (at < starts[one] || at >= starts[one + 1]) continue;
      const index = order[at];
      if (best < 0 || (direction > 0 ? index < best : index > best)) best = index;
    }
    return best;
  }
}
