"use strict";
// The page's data in memory: entries and tables, and the state at any moment. Input: the parts. Next: the views.

/**
 * @typedef {object} Summary
 * @property {number} format
 * @property {string} node
 * @property {string} version of chronolet
 * @property {number} entries
 * @property {number} block the number of texts in a block
 * @property {TableFacts[]} tables
 * @property {{steps: AgeStep[], year: number}} ages
 * @property {{position: string, milliseconds: number}} begin 0 if the page begins with the log
 * @property {{milliseconds: number}} end
 */
/** @typedef {{index: number, now: number}} Moment the state after an entry (-1: before the first), as seen at a time */

/** How many entries after a moment `--at` searches for entries that were recorded earlier (history/when.py). */
const FOLLOWING = 5_000;

class Model {
  /** @param {Summary} summary */
  constructor(summary) {
    this.summary = summary;
    this.count = summary.entries;
    /** @type {Table[]} */
    this.tables = [];
    this.objects = 0;
    this.milliseconds = new Float64Array(0);
    this.number = new Float64Array(0);
    this.behind = new Float64Array(0);
    this.cause = new Float64Array(0);
    this.severity = new Uint8Array(0);
    /** @type {{[name: string]: {words: string[], numbers: Uint32Array}}} */
    this.columns = {};
    /** The object that each entry is about, by its number among the objects of all tables. @type {Uint32Array} */
    this.about = new Uint32Array(0);
    /**
     * The entries in order of their objects; those of object `o` are from `starts[o]` to `starts[o + 1]`.
     * @type {Uint32Array}
     */
    this.order = new Uint32Array(0);
    /** @type {Uint32Array} */
    this.starts = new Uint32Array(0);
    this.levels = new Levels(this.severity);
    /** Whether the time of any entry is behind that of its position. */
    this.clockWasAhead = false;
  }

  static async read() {
    const model = new Model(await jsonPart("summary"));
    if (model.summary.format !== 1) throw new Error(`the data has format ${model.summary.format}, expected 1`);
    const [tables, words] = await Promise.all([Promise.all(model.summary.tables.map(Table.read)), model.readEntries()]);
    model.tables = tables;
    for (const table of tables) {
      table.offset = model.objects;
      model.objects += table.objects.length;
    }
    model.group(words.table, words.object);
    return model;
  }

  async readEntries() {
    const names = ["type", "entity", "subject", "origin"];
    const [milliseconds, number, behind, cause, severity, table, object, ...columns] = await Promise.all([
      f64Part("entry.milliseconds"),
      f64Part("entry.number"),
      f64Part("entry.behind"),
      f64Part("entry.cause"),
      u8Part("entry.severity"),
      u8Part("entry.table"),
      u32Part("entry.object"),
      ...names.map(async (name) => ({
        words: await jsonPart(`entry.${name}.words`),
        numbers: await u32Part(`entry.${name}`),
      })),
    ]);
    Object.assign(this, { milliseconds: sums(milliseconds), number: sums(number), behind, cause, severity });
    this.clockWasAhead = behind.some((one) => one > 0);
    names.forEach((name, at) => (this.columns[name] = columns[at]));
    return { table, object };
  }

  /**
   * Sort the entries by their objects, by counting.
   * @param {Uint8Array} table
   * @param {Uint32Array} object
   */
  group(table, object) {
    const offsets = this.tables.map((one) => one.offset);
    this.about = object;
    this.starts = new Uint32Array(this.objects + 1);
    for (let i = 0; i < this.count; i++) {
      object[i] += offsets[table[i]];
      this.starts[object[i] + 1]++;
    }
    for (let i = 0; i < this.objects; i++) this.starts[i + 1] += this.starts[i];
    const next = this.starts.slice();
    this.order = new Uint32Array(this.count);
    const severities = new Uint8Array(this.count);
    for (let i = 0; i < this.count; i++) {
      const at = next[object[i]]++;
      this.order[at] = i;
      severities[at] = this.severity[i];
    }
    this.levels = new Levels(severities);
  }

  /**
   * Return the table of an object and its number there.
   * @param {number} object
   */
  tableOf(object) {
    let at = this.tables.length - 1;
    while (at > 0 && (this.tables[at].offset > object || !this.tables[at].objects.length)) at--;
    const table = this.tables[at];
    return { table, number: object - table.offset };
  }

  /**
   * @param {string} column
   * @param {number} index
   */
  word(column, index) {
    const { words, numbers } = this.columns[column];
    return words[numbers[index]];
  }

  /** @param {number} index */
  position(index) {
    return index < 0 ? this.summary.begin.position : `${this.milliseconds[index]}-${this.number[index]}`;
  }

  /** @param {number} index */
  timeOf(index) {
    return index < 0 ? this.first : this.milliseconds[index] - this.behind[index];
  }

  /** The time at which the page begins: that of its first entry if it begins with the log. */
  get first() {
    return Math.min(this.summary.begin.milliseconds || this.milliseconds[0], this.milliseconds[0]);
  }

  /** The time at which the page ends, which is after its last entry. */
  get last() {
    return Math.max(this.summary.end.milliseconds, this.milliseconds[this.count - 1]);
  }

  /**
   * Return the moment right after an entry.
   * @param {number} index
   * @returns {Moment}
   */
  momentAt(index) {
    const valid = Math.max(-1, Math.min(this.count - 1, index));
    return { index: valid, now: this.timeOf(valid) };
  }

  /**
   * Return the moment of a time of the log: after all entries up to it.
   * @param {number} milliseconds
   * @returns {Moment}
   */
  momentOf(milliseconds) {
    const index = firstAbove(this.milliseconds, milliseconds) - 1;
    return { index, now: index < 0 ? Math.max(milliseconds, this.first) : milliseconds - this.behind[index] };
  }

  /**
   * Return the moment of a time, as `--at` finds it (history/when.py): after all entries up to it, and after later ones
   * that say that they were recorded up to it, because the clock had been ahead.
   * @param {number} milliseconds
   * @returns {Moment}
   */
  momentOfTime(milliseconds) {
    const bound = firstAbove(this.milliseconds, milliseconds);
    const late = this.lastRecordedBy(milliseconds, bound);
    return { index: late < 0 ? bound - 1 : late, now: milliseconds };
  }

  /**
   * Return whether the moment is not the one of its time, because the clock was set back: entries after it were
   * recorded at or before that time.
   * @param {Moment} moment
   */
  isOnlyPosition(moment) {
    const bound = firstAbove(this.milliseconds, moment.now);
    return this.lastRecordedBy(moment.now, bound) > moment.index;
  }

  /**
   * Return the last of the entries from `bound` on that was recorded up to a time; -1 if there is none.
   * @param {number} milliseconds
   * @param {number} bound
   */
  lastRecordedBy(milliseconds, bound) {
    let index = this.clockWasAhead ? Math.min(this.count, bound + FOLLOWING) - 1 : -1;
    while (index >= bound && this.timeOf(index) > milliseconds) index--;
    return index >= bound ? index : -1;
  }

  /**
   * Return the number of the entry that caused this one; 0 if no entry did.
   * @param {number} index
   */
  causeOf(index) {
    return this.cause[index] ? this.number[index] - this.cause[index] : 0;
  }

  /**
   * Return the cause of an entry as text, such as `#7` or the id of a request; empty if it has none.
   * @param {number} index
   */
  causeText(index) {
    return this.cause[index] ? `#${this.causeOf(index)}` : this.word("origin", index);
  }

  /**
   * Return the index of the entry with this number; -1 if the page has none.
   * @param {number} number
   */
  indexOf(number) {
    const index = firstAbove(this.number, number) - 1;
    if (index >= 0 && this.number[index] === number) return index;
    return this.number.indexOf(number); // next to an entry of another program, numbers are not in order
  }

  /**
   * Return the rows of a table at a moment, as texts.
   * @param {Table} table
   * @param {Moment} moment
   */
  rows(table, moment) {
    const ago = (/** @type {number} */ time) => age(moment.now - time, this.summary.ages);
    return table.rowsAt(moment.index).map(({ object, row }) => ({
      object: object + table.offset,
      look: table.look[row],
      cells: table.head.map((_, at) => table.cell(row, at, ago)),
    }));
  }
}
