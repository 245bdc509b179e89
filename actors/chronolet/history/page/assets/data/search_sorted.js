"use strict";
// Bisection in sorted numbers. Pure.

/**
 * Return the index of the first number that is greater than `value`, between `low` and `high`; `high` if there is none.
 * @param {ArrayLike<number>} numbers
 * @param {number} value
 */
function firstAbove(numbers, value, low = 0, high = numbers.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (numbers[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
