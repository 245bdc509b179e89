"use strict";
// Finds objects and entries by words. Names are searched at once; texts of entries block by block, on request. Input:
// a query. Output: which objects match, and the indexes of the entries that match. Next: timeline.js, entry_list.js.

class Search {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.texts = new Texts(model.summary.block);
    /** @type {string[]} */
    this.words = [];
    this.inTexts = false;
    /** @type {"all" | "notable" | "warning" | "kube"} */
    this.level = "all";
    /** The object to which entries are limited, and what belongs to it; empty: all. @type {Set<number>} */
    this.family = new Set();
    /** Whether each object's name has all words. */
    this.hits = new Uint8Array(model.objects);
    /** The entries that match; null: all of them. @type {Uint32Array | null} */
    this.found = null;
    this.progress = 1;
    this.run = 0;
  }

  /**
   * Start a search; `changed` is called whenever there are more results.
   * @param {{query: string, inTexts: boolean, level: string, family: number[]}} wanted
   * @param {() => void} changed
   */
  async start(wanted, changed) {
    const run = ++this.run;
    this.words = wanted.query.toLowerCase().split(/\s+/).filter(Boolean).slice(0, 31);
    this.level = /** @type {"all" | "notable" | "warning" | "kube"} */ (wanted.level);
    this.inTexts = wanted.inTexts && this.words.length > 0;
    this.family = new Set(wanted.family);
    this.hits = this.objectHits();
    this.progress = 1;
    if (!this.words.length && this.level === "all" && !this.family.size) {
      this.found = null;
    } else {
      this.found = this.byNames(this.candidates());
    }
    changed();
    if (this.inTexts) await this.byTexts(this.candidates(), run, changed);
  }

  get active() {
    return this.words.length > 0;
  }

  objectHits() {
    const hits = new Uint8Array(this.model.objects);
    for (const table of this.model.tables) {
      table.objects.forEach((name, number) => {
        const text = `${table.name}/${name}`.toLowerCase();
        hits[table.offset + number] = this.words.every((word) => text.includes(word)) ? 1 : 0;
      });
    }
    return hits;
  }

  /** Return which entries have the wanted severity and object, as a test. */
  candidates() {
    const { severity, about, columns } = this.model;
    const least = { all: 0, notable: 1, warning: 2, kube: 0 }[this.level];
    const kube = columns.type.words.map((word) => word.startsWith("kube_events.Recorded@"));
    return (/** @type {number} */ index) =>
      severity[index] >= least &&
      (this.level !== "kube" || kube[columns.type.numbers[index]]) &&
      (!this.family.size || this.family.has(about[index]));
  }

  /** Return the words of which each distinct value of a column has which, as bits. @param {string[]} values */
  bits(values) {
    return Uint32Array.from(values, (value) => this.bitsOf(value.toLowerCase()));
  }

  /** @param {string} text */
  bitsOf(text) {
    return this.words.reduce((bits, word, at) => (text.includes(word) ? bits | (1 << (at % 32)) : bits), 0);
  }

  /** Return the words that the names of each entry have, as a function. */
  nameBits() {
    const { columns, about, tables, objects } = this.model;
    const [types, entities, subjects] = ["type", "entity", "subject"].map((name) => this.bits(columns[name].words));
    const names = new Uint32Array(objects);
    for (const table of tables)
      names.set(this.bits(table.objects.map((name) => `${table.name}/${name}`)), table.offset);
    return (/** @type {number} */ index) =>
      types[columns.type.numbers[index]] |
      entities[columns.entity.numbers[index]] |
      subjects[columns.subject.numbers[index]] |
      names[about[index]];
  }

  get all() {
    return this.bitsOf(this.words.join(" "));
  }

  /** @param {(index: number) => boolean} candidate */
  byNames(candidate) {
    const [bits, all] = [this.nameBits(), this.all];
    const found = new Uint32Array(this.model.count);
    let length = 0;
    for (let i = 0; i < this.model.count; i++) if (candidate(i) && (bits(i) & all) === all) found[length++] = i;
    return found.slice(0, length);
  }

  /**
   * @param {(index: number) => boolean} candidate
   * @param {number} run
   * @param {() => void} changed
   */
  async byTexts(candidate, run, changed) {
    const [bits, all, size] = [this.nameBits(), this.all, this.model.summary.block];
    const found = new Uint32Array(this.model.count);
    const blocks = Math.ceil(this.model.count / size);
    let length = 0;
    for (let block = 0; block < blocks; block++) {
      const lines = await this.texts.block(block);
      if (run !== this.run) return; // another search has begun
      lines.forEach((line, at) => {
        const index = block * size + at;
        if (candidate(index) && ((bits(index) | this.bitsOf(line.toLowerCase())) & all) === all)
          found[length++] = index;
      });
      this.progress = (block + 1) / blocks;
      if (block % 16 === 15 || block === blocks - 1) {
        this.found = found.slice(0, length);
        changed();
      }
    }
  }
}
