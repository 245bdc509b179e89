"use strict";
// Formats times and ages. Pure. An age has the form that `chronolet get` prints; its steps come with the page's data.

/** @typedef {[below: number, unit: number, letter: string, finer: number, finerLetter: string]} AgeStep */

/**
 * @param {number} milliseconds
 * @param {{steps: AgeStep[], year: number}} ages
 */
function age(milliseconds, ages) {
  if (milliseconds <= -2000) return "<invalid>";
  const seconds = Math.floor(Math.max(0, milliseconds) / 1000);
  for (const [below, unit, letter, finer, finerLetter] of ages.steps) {
    if (seconds >= below) continue;
    const rest = finer ? Math.floor((seconds % unit) / finer) : 0;
    return `${Math.floor(seconds / unit)}${letter}${rest ? rest + finerLetter : ""}`;
  }
  return `${Math.floor(seconds / ages.year)}y`;
}

/** @param {number} milliseconds */
function utc(milliseconds) {
  const time = new Date(milliseconds);
  return Number.isNaN(time.getTime()) ? `${milliseconds} ms` : time.toISOString();
}

const TICKS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5,
  216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6,
];

/**
 * Return the distance of the ticks of a time axis, in milliseconds, at least `least`.
 * @param {number} least
 */
function tickDistance(least) {
  return TICKS.find((one) => one >= least) || TICKS[TICKS.length - 1];
}

/**
 * @param {number} milliseconds
 * @param {number} distance of the ticks
 */
function tickText(milliseconds, distance) {
  const text = utc(milliseconds);
  if (distance >= 864e5) return text.slice(0, 10);
  if (distance >= 6e4) return text.slice(11, 16);
  return distance >= 1e3 ? text.slice(11, 19) : text.slice(11, 23);
}
