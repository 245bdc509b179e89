"use strict";
// Links to an object at a moment: `#pod/web@1795812003860-91588`. Pure. The namespace `default` is left out, as in
// commands. Input: a fragment. Output: an object and a moment. Next: main.js.

/** @param {string} name of an object of a table whose names begin with a namespace */
function withoutNamespace(name) {
  return name.replace(/^default\//, "");
}

/**
 * Return the name of an object for people, such as `pod web`.
 * @param {Model} model
 * @param {number} object
 */
function nameOf(model, object) {
  const { table, number } = model.tableOf(object);
  return `${table.name} ${withoutNamespace(table.objects[number])}`;
}

/**
 * Return the link to an object (-1: to the page) at a moment.
 * @param {Model} model
 * @param {number} object
 * @param {Moment} moment
 */
function linkOf(model, object, moment) {
  const at = moment.index < 0 ? "" : `@${model.position(moment.index)}`;
  if (object < 0) return `#${at}`;
  const { table, number } = model.tableOf(object);
  const name = withoutNamespace(table.objects[number]);
  return `#${table.name}/${name.split("/").map(encodeURIComponent).join("/")}${at}`;
}

/**
 * Find what a link names. `error` says what the page does not have.
 * @param {Model} model
 * @param {string} fragment
 * @returns {{object: number, moment: Moment | null, error: string}}
 */
function linked(model, fragment) {
  let text = "";
  try {
    text = decodeURIComponent(fragment.replace(/^#/, ""));
  } catch {
    return { object: -1, moment: null, error: `the link ${fragment} is not a valid address` };
  }
  const at = text.lastIndexOf("@");
  const name = at < 0 || !/^@\d+(-\d+)?$/.test(text.slice(at)) ? text : text.slice(0, at);
  const found = name ? named(model, name) : -1;
  if (name && found < 0) return { object: -1, moment: null, error: `this page has no ${name}` };
  if (name === text) return { object: found, moment: null, error: "" };
  const index = entryNamed(model, text.slice(at + 1)) ?? -1;
  if (index < 0) {
    const span = `${model.position(0)} to ${model.position(model.count - 1)}`;
    return { object: found, moment: null, error: `this page has no event ${text.slice(at + 1)}: it has ${span}` };
  }
  return { object: found, moment: model.momentAt(index), error: "" };
}

/**
 * Return the object of this name, such as `pod/web` or `container/data/db/app`; -1 if there is none.
 * @param {Model} model
 * @param {string} text
 */
function named(model, text) {
  const slash = text.indexOf("/");
  const table = model.tables.find((one) => one.name === text.slice(0, slash));
  if (!table) return -1;
  const name = text.slice(slash + 1);
  const number = table.numbers.get(`default/${name}`) ?? table.numbers.get(name);
  return number === undefined ? -1 : table.offset + number;
}
