"use strict";
// The selected object: its row at the moment, the rows that it had, and links. Input: the page's state.
// Output: the moment. Next: main.js.

const MOST_VERSIONS = 100;

class ObjectPanel {
  /** @param {PageState} state */
  constructor(state) {
    this.state = state;
    this.panel = byId("panel-object");
    this.title = byId("object-title");
    /** What was drawn last. */
    this.drawn = "";
    this.facts = byId("object-facts");
    this.versions = byId("object-versions");
    this.link = /** @type {HTMLAnchorElement} */ (byId("object-link"));
    /** @type {[string, 1 | -1, number][]} */
    const buttons = [
      ["object-previous", -1, 0],
      ["object-next", 1, 0],
      ["object-previous-warning", -1, 2],
      ["object-next-warning", 1, 2],
    ];
    for (const [id, direction, least] of buttons) byId(id).addEventListener("click", () => this.step(direction, least));
    state.listen(() => this.render());
  }

  /**
   * @param {1 | -1} direction
   * @param {number} least
   */
  step(direction, least) {
    if (this.state.object < 0) return announce("no object is selected");
    const index = this.state.neighbour(this.state.object, direction, least);
    if (index >= 0) this.state.setMoment(this.state.model.momentAt(index));
    else announce(`no ${direction > 0 ? "later" : "earlier"} ${least ? "warning" : "event"} about it`);
  }

  render() {
    if (this.panel.hidden) return;
    const { model, object, moment } = this.state;
    const drawn = `${object} ${moment.index} ${moment.now}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    if (object < 0)
      return void (this.title.textContent = "Nothing is selected. Choose an object in the timeline or in a table.");
    const { table, number } = model.tableOf(object);
    const row = table.rowAt(number, moment.index);
    this.title.textContent = nameOf(model, object);
    this.link.href = linkOf(model, object, moment);
    const ago = (/** @type {number} */ time) => age(moment.now - time, model.summary.ages);
    const facts = table.head.flatMap((name, at) => [
      make("dt", {}, name),
      make("dd", {}, row < 0 ? "" : table.cell(row, at, ago)),
    ]);
    this.facts.replaceChildren(
      ...(row < 0 ? [make("dt", {}, "STATE"), make("dd", {}, "does not exist at this moment")] : facts),
    );
    this.versions.replaceChildren(...this.changes(table, number, ago));
  }

  /**
   * Return a list item for each row of the object around the moment, with what changed in it.
   * @param {Table} table
   * @param {number} number
   * @param {(time: number) => string} ago
   */
  changes(table, number, ago) {
    const [start, end] = [table.start[number], table.start[number + 1]];
    const { model, moment } = this.state;
    const current = firstAbove(table.begin, moment.index + 1, start, end) - 1;
    const first = Math.max(start, Math.min(current - MOST_VERSIONS / 2, end - MOST_VERSIONS));
    const items = [];
    for (let row = first; row < Math.min(end, first + MOST_VERSIONS); row++) {
      const index = table.begin[row] - 1;
      const time = index < 0 ? "at the beginning" : `${utc(model.timeOf(index))} #${model.number[index]}`;
      const text = `${time}: ${this.difference(table, row, start, ago)}`;
      const go = button(
        text,
        () => this.state.setMoment(model.momentAt(index)),
        row === current ? { "aria-current": "true" } : {},
      );
      items.push(make("li", { class: LOOKS[table.look[row]] }, go));
    }
    return items;
  }

  /**
   * @param {Table} table
   * @param {number} row
   * @param {number} start
   * @param {(time: number) => string} ago
   */
  difference(table, row, start, ago) {
    if (table.look[row] === GONE) return "gone";
    const isNew = row === start || table.look[row - 1] === GONE;
    const changed = table.head
      .map((_, at) => at)
      .filter((at) => isNew || table.columns[at].numbers[row] !== table.columns[at].numbers[row - 1]);
    return (
      changed.map((at) => `${table.head[at]} ${table.cell(row, at, ago) || "-"}`).join(", ") || LOOKS[table.look[row]]
    );
  }
}
