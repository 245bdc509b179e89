"use strict";
// Where a long list is scrolled to. Browsers limit the height of an element to some ten million pixels, which is less
// than a million rows: above `MOST_PIXELS`, small movements scroll by rows, and large ones by their share of the
// height. Pure.

const MOST_PIXELS = 8_000_000;

class ScrollPosition {
  constructor() {
    this.rows = 0;
    this.rowHeight = 24;
    this.view = 0;
    /** How far the first visible row is from the first one, in pixels as if the list had its whole height. */
    this.offset = 0;
    this.top = 0;
  }

  get whole() {
    return this.rows * this.rowHeight;
  }

  /** The height of the scrolled element. */
  get height() {
    return Math.min(this.whole, MOST_PIXELS);
  }

  get mostOffset() {
    return Math.max(0, this.whole - this.view);
  }

  get mostTop() {
    return Math.max(0, this.height - this.view);
  }

  /** Follow the element, which was scrolled to this distance from its top. @param {number} top */
  scrolled(top) {
    const distance = top - this.top;
    this.top = top;
    if (this.whole <= MOST_PIXELS) this.offset = top;
    else if (top <= 0) this.offset = 0;
    else if (top >= this.mostTop - 1) this.offset = this.mostOffset;
    else if (Math.abs(distance) < this.view * 3) this.offset += distance;
    else this.offset = (top / this.mostTop) * this.mostOffset;
    this.offset = Math.max(0, Math.min(this.mostOffset, this.offset));
  }

  /** Return the distance from the top that belongs to an offset, to which the element must be scrolled. */
  topOf() {
    if (this.whole <= MOST_PIXELS) return this.offset;
    return (this.offset / this.mostOffset) * this.mostTop;
  }

  /** Change the offset so that a row is visible. @param {number} row */
  reveal(row) {
    const at = row * this.rowHeight;
    if (at < this.offset || at + this.rowHeight > this.offset + this.view) {
      this.offset = Math.max(0, Math.min(this.mostOffset, at - this.view / 2));
    }
    this.top = this.topOf();
  }
}
