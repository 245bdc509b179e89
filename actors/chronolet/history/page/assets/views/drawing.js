"use strict";
// Draws a lane, the time axis and the overview. Input: the model, a window, a canvas. Next: timeline.js.
// Each pixel is drawn once, however many rows and entries it stands for: the next one is found by bisection, and the
// worst of them by levels of detail.

/** How much of a lane's height a row takes, by its look: what is worse is taller, so colour is not the only sign. */
const HEIGHTS = [0, 0.2, 0.45, 0.7, 1];

/** @typedef {{look: string[], severity: string[], text: string, moment: string, stripe: string}} Colours */

/** @returns {Colours} */
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    look: LOOKS.map(colour),
    severity: ["entry", "notable", "warning"].map(colour),
    text: colour("text"),
    moment: colour("moment"),
    stripe: colour("stripe"),
  };
}

class Drawing {
  /**
   * @param {Model} model
   * @param {TimeWindow} window
   */
  constructor(model, window) {
    this.model = model;
    this.window = window;
    this.colours = readColours();
    this.pixelsKey = "";
    this.counts = new Uint32Array(0);
    this.before = 0;
  }

  /**
   * Return how many entries there are before the window, and up to each pixel, including those in it. They are the same
   * for all lanes, so they are computed once for each window.
   * @param {number} width
   */
  pixels(width) {
    const { window, model } = this;
    const key = `${window.from} ${window.to} ${width}`;
    if (key !== this.pixelsKey) {
      this.pixelsKey = key;
      // Times are whole milliseconds.
      const countUpTo = (/** @type {number} */ x, low = 0) =>
        firstAbove(model.milliseconds, Math.ceil(window.time(x, width)) - 1, low);
      this.before = countUpTo(0);
      this.counts = new Uint32Array(Math.ceil(width));
      for (let x = 0, at = this.before; x < this.counts.length; x++) this.counts[x] = at = countUpTo(x + 1, at);
    }
    return this;
  }

  /**
   * Draw the rows of an object as bars.
   * @param {CanvasRenderingContext2D} context
   * @param {number} object
   * @param {{top: number, height: number, width: number}} box
   */
  rows(context, object, box) {
    const { table, number } = this.model.tableOf(object);
    const { begin, look, levels } = table;
    const [start, end] = [table.start[number], table.start[number + 1]];
    const { counts, before } = this.pixels(box.width);
    const pixel = (/** @type {number} */ row) => (row < end ? this.rowX(begin[row], before, box.width) : box.width);
    let row = Math.max(start, firstAbove(begin, before, start, end) - 1);
    while (row < end) {
      const x = pixel(row);
      if (x >= box.width) return;
      let next = row + 1;
      if (pixel(next) <= x) {
        // several rows begin in this pixel
        next = Math.max(next, firstAbove(begin, counts[x], next, end));
        this.bar(context, levels.max(row, next), box, x, 1);
      }
      this.bar(context, look[next - 1], box, next > row + 1 ? x + 1 : x, Math.min(pixel(next), box.width) - x);
      row = next;
    }
  }

  /**
   * Return the pixel in which a row begins; 0 if it began before the window.
   * @param {number} begin the number of entries up to the one with which the row begins
   * @param {number} before
   * @param {number} width
   */
  rowX(begin, before, width) {
    return begin <= before ? 0 : Math.floor(this.window.x(this.model.milliseconds[begin - 1], width));
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} look
   * @param {{top: number, height: number}} box
   * @param {number} x
   * @param {number} width
   */
  bar(context, look, box, x, width) {
    const height = HEIGHTS[look] * (box.height - 6);
    if (!height || width <= 0) return;
    context.fillStyle = this.colours.look[look];
    context.fillRect(x, box.top + box.height - 3 - height, width, height);
  }

  /**
   * Draw the entries about an object as ticks, at most one for each pixel.
   * @param {CanvasRenderingContext2D} context
   * @param {number} object
   * @param {{top: number, height: number, width: number}} box
   */
  ticks(context, object, box) {
    const { order, starts, milliseconds, levels } = this.model;
    const { counts, before } = this.pixels(box.width);
    const end = starts[object + 1];
    let at = firstAbove(order, before - 1, starts[object], end);
    while (at < end) {
      const x = Math.floor(this.window.x(milliseconds[order[at]], box.width));
      if (x >= box.width) return;
      const next = Math.max(at + 1, firstAbove(order, counts[x] - 1, at, end));
      const severity = levels.max(at, next);
      context.fillStyle = this.colours.severity[severity];
      context.fillRect(x, box.top + 2, severity ? 2 : 1, severity ? 7 : 4);
      at = next;
    }
  }

  /**
   * Draw the time axis: a line and a time for each tick.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   */
  axis(context, width, height) {
    const distance = tickDistance((this.window.length / width) * 90);
    context.fillStyle = this.colours.text;
    context.font = "11px system-ui, sans-serif";
    for (let time = Math.ceil(this.window.from / distance) * distance; time <= this.window.to; time += distance) {
      const x = Math.round(this.window.x(time, width));
      context.fillRect(x, height - 5, 1, 5);
      context.fillText(tickText(time, distance), x + 3, height - 4);
    }
  }

  /**
   * Draw how many entries there are over the whole span, with the window as a frame.
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   * @param {Overview} overview
   */
  overview(context, width, height, overview) {
    const { counts, severities, most } = overview.of(width);
    for (let x = 0; x < counts.length; x++) {
      if (!counts[x]) continue;
      const bar = Math.max(2, (Math.log1p(counts[x]) / Math.log1p(most)) * (height - 4));
      context.fillStyle = this.colours.severity[severities[x]];
      context.fillRect(x, height - bar, 1, bar);
    }
    const whole = this.window.last - this.window.first;
    const from = ((this.window.from - this.window.first) / whole) * width;
    const to = ((this.window.to - this.window.first) / whole) * width;
    context.strokeStyle = this.colours.moment;
    context.strokeRect(from + 0.5, 0.5, Math.max(3, to - from - 1), height - 1);
  }
}

/** How many entries, and how severe ones, each pixel of the whole span stands for. */
class Overview {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.levels = new Levels(model.severity);
    this.counts = new Uint32Array(0);
    this.severities = new Uint8Array(0);
    this.most = 1;
  }

  /** @param {number} width */
  of(width) {
    const pixels = Math.max(1, Math.floor(width));
    if (this.counts.length !== pixels) this.count(pixels);
    return this;
  }

  /** @param {number} pixels */
  count(pixels) {
    const { milliseconds, count, first, last } = this.model;
    this.counts = new Uint32Array(pixels);
    this.severities = new Uint8Array(pixels);
    for (let x = 0, from = 0; x < pixels; x++) {
      const to = x === pixels - 1 ? count : firstAbove(milliseconds, first + ((x + 1) / pixels) * (last - first));
      this.counts[x] = to - from;
      this.severities[x] = this.levels.max(from, to);
      from = to;
    }
    this.most = this.counts.reduce((one, other) => Math.max(one, other), 1);
  }
}
