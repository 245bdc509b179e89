"use strict";
// The span of time that is visible, and how it is zoomed and moved. Pure.

const SHORTEST = 10; // milliseconds

class TimeWindow {
  /**
   * @param {number} first
   * @param {number} last both in milliseconds; the window never leaves this span
   */
  constructor(first, last) {
    this.first = first;
    this.last = Math.max(last, first + SHORTEST);
    this.from = this.first;
    this.to = this.last;
  }

  get length() {
    return this.to - this.from;
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  set(from, to) {
    const length = Math.min(Math.max(to - from, SHORTEST), this.last - this.first);
    this.from = Math.max(this.first, Math.min(from, this.last - length));
    this.to = this.from + length;
  }

  /**
   * Divide the window's length by `factor`; the time `around` stays where it is.
   * @param {number} factor
   * @param {number} around
   */
  zoom(factor, around) {
    const length = this.length / factor;
    const share = (around - this.from) / this.length;
    this.set(around - share * length, around + (1 - share) * length);
  }

  /** @param {number} milliseconds */
  move(milliseconds) {
    this.set(this.from + milliseconds, this.to + milliseconds);
  }

  /** Move the window so that it contains this time. @param {number} time */
  include(time) {
    if (time < this.from || time > this.to) this.move(time - (this.from + this.to) / 2);
  }

  /**
   * Return where a time is, in pixels.
   * @param {number} time
   * @param {number} width
   */
  x(time, width) {
    return ((time - this.from) / this.length) * width;
  }

  /**
   * @param {number} x
   * @param {number} width
   */
  time(x, width) {
    return this.from + (x / width) * this.length;
  }
}
