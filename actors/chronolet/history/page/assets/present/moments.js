"use strict";
// The moments that a person can name, in the forms that `--at` takes (history/when.py), and their texts. Times that
// name no zone are in UTC, and a page's present is its end. Pure. Input: text. Output: a moment. Next: moment_bar.js.

/** @type {{[unit: string]: number}} */
const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Return the index of the entry that `#4711`, `4711` or a position names: -1 if the page does not have it, null if the
 * text is something else.
 * @param {Model} model
 * @param {string} text
 */
function entryNamed(model, text) {
  const found = /^(?:#|(\d+)-)?(\d+)$/.exec(text);
  if (!found) return null;
  const index = model.indexOf(Number(found[2]));
  return found[1] === undefined || model.milliseconds[index] === Number(found[1]) ? index : -1;
}

/**
 * Return the milliseconds of a time; NaN if the text is none.
 * @param {string} text `-15m`, `@1795812003`, `03:00`, `2026-11-21`, `2026-11-21 03:00` or `2026-11-21T03:00:00Z`
 * @param {number} end before which a duration is, and a time without a date
 */
function timeNamed(text, end) {
  if (/^-(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(text)) {
    const parts = [...text.matchAll(/([\d.]+)(ms|s|m|h|d)/g)];
    return end - Math.round(parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit], 0));
  }
  if (/^@\d{1,11}(?:\.\d{1,3})?$/.test(text)) return Math.round(Number(text.slice(1)) * 1000);
  const [, date, clock] = /^(\d{4}-\d\d-\d\d)(?:[Tt ](.+))?$/.exec(text) || [];
  if (date) return dated(date, clock || "0:00");
  const today = dated(utc(end).slice(0, 10), text);
  // A zone may move the time by up to a day.
  return [1, 0, -1, -2].map((days) => today + days * UNITS.d).find((time) => time <= end) ?? Number.NaN;
}

/**
 * @param {string} date
 * @param {string} clock
 */
function dated(date, clock) {
  const found = /^(\d{1,2}):(\d\d)(:\d\d(?:\.\d+)?)?(?:[Zz]|([+-]\d\d):?(\d\d))?$/.exec(clock);
  if (!found || !utc(Date.parse(`${date}T00:00Z`)).startsWith(date)) return Number.NaN; // such as February 30
  const [, hour, minute, second, zoneHours, zoneMinutes] = found;
  const zone = zoneHours ? `${zoneHours}:${zoneMinutes}` : "Z";
  return Date.parse(`${date}T${hour.padStart(2, "0")}:${minute}${second || ":00"}${zone}`);
}

/**
 * Find the moment that a text names. `error` says what was expected, if the page has no such moment.
 * @param {Model} model
 * @param {string} text
 * @returns {{moment: Moment | null, error: string}}
 */
function momentNamed(model, text) {
  const index = entryNamed(model, text);
  if (index !== null && index >= 0) return { moment: model.momentAt(index), error: "" };
  const time = index === null ? timeNamed(text, model.summary.end.milliseconds) : Number.NaN;
  const moment = model.momentOfTime(time);
  // If the clock was ahead when the log began, times before the first position have entries.
  if (time <= model.last && (time >= model.first || moment.index >= 0)) return { moment, error: "" };
  const span = `${utc(model.first)} to ${utc(model.last)}`;
  const forms = "such as 03:00, -15m before the page's end, or @1795812003";
  const error = `found ${text}, expected an event such as #${model.number[0]}, or a time from ${span}, ${forms}`;
  return { moment: null, error };
}

/**
 * Return when a moment is, after the title of what is shown.
 * @param {Model} model
 * @param {Moment} moment
 */
function momentText(model, moment) {
  if (!model.isOnlyPosition(moment)) return `at ${utc(moment.now)}`;
  const place = moment.index < 0 ? "before the first event" : `after #${model.number[moment.index]}`;
  return `${place}, by its position: the clock was set back, and --at ${utc(moment.now)} has later events too`;
}
