"use strict";
// The lanes of the timeline: a tree of tables, objects and the objects that belong to them. Pure.
// Input: the model, what is expanded, a filter. Output: the visible lanes, from top to bottom. Next: timeline.js.

/**
 * @typedef {object} Lane
 * @property {string} id the name of the table for its heading, `o` and the object's number for an object
 * @property {number} object -1 for the heading of a table
 * @property {number} depth
 * @property {string} text
 * @property {boolean | null} expanded null if nothing belongs to it
 * @property {number} place among the lanes of the same parent, from 1
 * @property {number} siblings the number of these lanes
 */

class Lanes {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    /** @type {Set<string>} */
    this.expanded = new Set(model.tables.map((one) => one.name));
    /** How often an expansion has changed. */
    this.version = 0;
    /** @type {Map<number, number[]>} */
    this.children = new Map();
    /** @type {Map<string, number[]>} */
    this.roots = new Map();
    for (const table of model.tables) this.sort(table);
  }

  /** @param {Table} table */
  sort(table) {
    const parents = this.model.tables.find((one) => one.name === table.parent);
    const numbers = table.objects.map((_, number) => number).sort((one, other) => table.compare(one, other, 0));
    for (const number of numbers) {
      const parent = parents && parents.numbers.get(table.parentName(number));
      const known = /** @type {Map<string | number, number[]>} */ (parent === undefined ? this.roots : this.children);
      const key = parents && parent !== undefined ? parents.offset + parent : table.name;
      const list = known.get(key);
      if (list) list.push(table.offset + number);
      else known.set(key, [table.offset + number]);
    }
  }

  /**
   * Return the lanes. `matches` selects objects; what an object belongs to is shown with it.
   * @param {((object: number) => boolean) | null} matches
   */
  visible(matches) {
    /** @type {Lane[]} */
    const found = [];
    /** @type {Lane[]} */
    const headings = [];
    for (const table of this.model.tables) {
      const objects = this.roots.get(table.name) || [];
      const shown = matches ? objects.filter((one) => this.anyMatches(one, matches)) : objects;
      if (!shown.length) continue;
      const expanded = this.expanded.has(table.name);
      const text = `${table.title} (${shown.length})`;
      const heading = { id: table.name, object: -1, depth: 0, text, expanded, place: headings.length + 1, siblings: 0 };
      headings.push(heading);
      found.push(heading);
      if (expanded) this.add(found, shown, 1, matches);
    }
    for (const heading of headings) heading.siblings = headings.length;
    return found;
  }

  /**
   * Add the lanes of these objects, which belong to the same one, and of what belongs to them.
   * @param {Lane[]} found
   * @param {number[]} objects
   * @param {number} depth
   * @param {((object: number) => boolean) | null} matches
   */
  add(found, objects, depth, matches) {
    objects.forEach((object, at) => {
      const { table, number } = this.model.tableOf(object);
      const children = this.children.get(object) || [];
      const name = table.objects[number];
      const text = (depth > 1 ? name.slice(name.lastIndexOf("/") + 1) : name).replace(/^default\//, "");
      const id = `o${object}`;
      const expanded = children.length ? this.expanded.has(id) : null;
      found.push({ id, object, depth, text, expanded, place: at + 1, siblings: objects.length });
      if (!expanded) return;
      const shown = matches ? children.filter((one) => this.anyMatches(one, matches)) : children;
      this.add(found, shown, depth + 1, matches);
    });
  }

  /**
   * @param {number} object
   * @param {(object: number) => boolean} matches
   * @returns {boolean}
   */
  anyMatches(object, matches) {
    return matches(object) || (this.children.get(object) || []).some((one) => this.anyMatches(one, matches));
  }

  /**
   * Return an object and all that belong to it.
   * @param {number} object
   * @returns {number[]}
   */
  family(object) {
    return [object, ...(this.children.get(object) || []).flatMap((one) => this.family(one))];
  }

  /**
   * Expand what an object belongs to, so that its lane is visible.
   * @param {number} object
   */
  reveal(object) {
    const { table, number } = this.model.tableOf(object);
    const parents = this.model.tables.find((one) => one.name === table.parent);
    const parent = parents && parents.numbers.get(table.parentName(number));
    if (!parents || parent === undefined) return this.setExpanded(table.name, true);
    this.setExpanded(`o${parents.offset + parent}`, true);
    this.reveal(parents.offset + parent);
  }

  /**
   * @param {string} id of a lane
   * @param {boolean} expanded
   */
  setExpanded(id, expanded) {
    if (this.expanded.has(id) === expanded) return;
    if (expanded) this.expanded.add(id);
    else this.expanded.delete(id);
    this.version++;
  }

  /** @param {boolean} expanded */
  setAll(expanded) {
    for (const object of this.children.keys()) this.setExpanded(`o${object}`, expanded);
  }
}
