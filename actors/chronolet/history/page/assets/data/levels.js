"use strict";
// Levels of detail: the maximum of any range of small numbers, in a time that grows with the logarithm of its length.
// Pure. So the worst state within a pixel is drawn, however many rows begin and end in it.

const FACTOR = 16;

class Levels {
  /** @param {Uint8Array} numbers */
  constructor(numbers) {
    /** @type {Uint8Array[]} */
    this.levels = [numbers];
    for (let below = numbers; below.length > FACTOR;) {
      const level = new Uint8Array(Math.ceil(below.length / FACTOR));
      for (let i = 0; i < below.length; i++) {
        const at = (i / FACTOR) | 0;
        if (below[i] > level[at]) level[at] = below[i];
      }
      this.levels.push(level);
      below = level;
    }
  }

  /**
   * Return the greatest number from index `low` up to, not including, `high`; 0 for an empty range.
   * @param {number} low
   * @param {number} high
   */
  max(low, high) {
    let found = 0;
    for (let level = 0; low < high; level++) {
      const numbers = this.levels[level];
      if (level === this.levels.length - 1) {
        for (; low < high; low++) if (numbers[low] > found) found = numbers[low];
        return found;
      }
      for (; low < high && low % FACTOR; low++) if (numbers[low] > found) found = numbers[low];
      for (; low < high && high % FACTOR; high--) if (numbers[high - 1] > found) found = numbers[high - 1];
      low /= FACTOR;
      high /= FACTOR;
    }
    return found;
  }
}
