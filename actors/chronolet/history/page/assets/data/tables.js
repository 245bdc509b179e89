"use strict";
// The rows of the objects of one table over time. Input: the table's parts. Next: model.js.

/** @typedef {(string | number)[]} Cell texts, and between them the times of which the age is shown */
/** @typedef {{name: string, title: string, head: string[], parent: string}} TableFacts */

const GONE = 0;
const LOOKS = ["gone", "idle", "good", "waiting", "bad"];

class Table {
  /** @param {TableFacts} facts */
  constructor(facts) {
    this.name = facts.name;
    this.title = facts.title;
    this.head = facts.head;
    this.parent = facts.parent;
    /** The number of the table's first object among the objects of all tables. */
    this.offset = 0;
    /** @type {string[]} */
    this.objects = [];
    this.start = new Uint32Array(1);
    this.begin = new Uint32Array(0);
    this.look = new Uint8Array(0);
    this.rank = new Float64Array(0);
    this.levels = new Levels(this.look);
    /** @type {{words: Cell[], numbers: Uint32Array}[]} */
    this.columns = [];
    /** @type {Map<string, number>} */
    this.numbers = new Map();
  }

  /** @param {TableFacts} facts */
  static async read(facts) {
    const table = new Table(facts);
    [table.objects, table.start, table.begin, table.look, table.rank] = await Promise.all([
      jsonPart(`${facts.name}.objects`),
      u32Part(`${facts.name}.start`),
      u32Part(`${facts.name}.begin`),
      u8Part(`${facts.name}.look`),
      f64Part(`${facts.name}.rank`),
    ]);
    table.levels = new Levels(table.look);
    table.columns = await Promise.all(
      facts.head.map(async (_, number) => {
        const name = `${facts.name}.${number}`;
        return { words: await jsonPart(`${name}.words`), numbers: await u32Part(name) };
      }),
    );
    table.objects.forEach((name, number) => table.numbers.set(name, number));
    return table;
  }

  /**
   * Return the number of an object's row after the entry with this index; -1 if the object does not exist then.
   * @param {number} object
   * @param {number} index
   */
  rowAt(object, index) {
    const row = firstAbove(this.begin, index + 1, this.start[object], this.start[object + 1]) - 1;
    return row < this.start[object] || this.look[row] === GONE ? -1 : row;
  }

  /**
   * Return the rows after the entry with this index, in the order in which `chronolet get` lists them.
   * @param {number} index
   */
  rowsAt(index) {
    const found = [];
    for (let object = 0; object < this.objects.length; object++) {
      const row = this.rowAt(object, index);
      if (row >= 0) found.push({ object, row });
    }
    return found.sort((one, other) =>
      this.compare(one.object, other.object, this.rank[one.row] - this.rank[other.row]),
    );
  }

  /**
   * Compare two objects for sorting: by the names of their parents, then by the difference of their ranks, then by
   * name.
   * @param {number} one
   * @param {number} other
   * @param {number} ranks
   */
  compare(one, other, ranks) {
    const [left, right] = [this.objects[one], this.objects[other]];
    if (this.parent && this.parentName(one) !== this.parentName(other)) {
      return this.parentName(one) < this.parentName(other) ? -1 : 1;
    }
    return ranks || (left < right ? -1 : 1);
  }

  /** @param {number} object */
  parentName(object) {
    const name = this.objects[object];
    return name.slice(0, Math.max(0, name.lastIndexOf("/")));
  }

  /**
   * @param {number} row
   * @param {number} column
   * @param {(milliseconds: number) => string} ago
   */
  cell(row, column, ago) {
    const { words, numbers } = this.columns[column];
    return words[numbers[row]].map((part) => (typeof part === "number" ? ago(part) : part)).join("");
  }
}
