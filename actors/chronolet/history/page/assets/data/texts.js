"use strict";
// The texts of the entries, which are in blocks: a block is decompressed when one of its texts is needed.
// Input: indexes of entries. Output: texts. Next: entry_list.js, search.js.

const KEPT_BLOCKS = 64;

class Texts {
  /** @param {number} size of a block */
  constructor(size) {
    this.size = size;
    /** @type {Map<number, string[]>} */
    this.blocks = new Map();
    /** @type {Map<number, Promise<string[]>>} */
    this.loading = new Map();
    /** The blocks that cannot be decompressed. @type {Set<number>} */
    this.lost = new Set();
    /** @type {() => void} */
    this.loaded = () => {};
    /** @type {(error: Error) => void} */
    this.failed = () => {};
  }

  /**
   * Return the text of an entry; null if its block is being decompressed, after which `loaded` is called.
   * @param {number} index
   */
  now(index) {
    const number = Math.floor(index / this.size);
    const block = this.blocks.get(number);
    if (block) return block[index % this.size];
    if (this.lost.has(number)) return "(this text is missing: the page is damaged)";
    this.block(number).then(
      () => this.loaded(),
      (error) => {
        this.lost.add(number);
        this.failed(error);
        this.loaded();
      },
    );
    return null;
  }

  /**
   * @param {number} number
   * @returns {Promise<string[]>}
   */
  block(number) {
    const known = this.blocks.get(number);
    if (known) return Promise.resolve(known);
    let loading = this.loading.get(number);
    if (!loading) {
      loading = this.read(number);
      this.loading.set(number, loading);
    }
    return loading;
  }

  /** @param {number} number */
  async read(number) {
    const name = `text.${number}`;
    if (!document.getElementById(`part-${name}`) && document.readyState === "loading") {
      await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
    }
    const lines = new TextDecoder().decode(await rawPart(name, true)).split("\n");
    if (this.blocks.size >= KEPT_BLOCKS) this.blocks.delete(/** @type {number} */ (this.blocks.keys().next().value));
    this.blocks.set(number, lines);
    this.loading.delete(number);
    return lines;
  }
}
