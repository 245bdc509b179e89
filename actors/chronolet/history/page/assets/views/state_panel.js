"use strict";
// The state of the node at the moment: one table at a time, as `chronolet get` prints it. Input: the page's state.
// Output: the selection. Next: main.js.

const MOST_ROWS = 1_000;

class StatePanel {
  /** @param {PageState} state */
  constructor(state) {
    this.state = state;
    this.panel = byId("panel-state");
    this.select = /** @type {HTMLSelectElement} */ (byId("table"));
    this.table = byId("rows");
    this.note = byId("rows-note");
    state.model.tables.forEach((table, at) => this.select.append(make("option", { value: String(at) }, table.title)));
    this.select.value = String(
      Math.max(
        0,
        state.model.tables.findIndex((one) => one.name === "pod"),
      ),
    );
    this.select.addEventListener("change", () => state.changed());
    this.table.addEventListener("click", (event) => this.onClick(event));
    state.listen(() => this.render());
  }

  render() {
    if (this.panel.hidden) return;
    const { model, moment, search } = this.state;
    const table = model.tables[Number(this.select.value)];
    const every = model.rows(table, moment);
    const found = search.active ? every.filter((one) => search.hits[one.object]) : every;
    const head = make("tr", {}, ...table.head.map((text) => make("th", { scope: "col" }, text)));
    const rows = found.slice(0, MOST_ROWS).map((row) => this.row(table, row));
    this.table.replaceChildren(
      make("caption", {}, `${table.title} at ${utc(moment.now)}`),
      make("thead", {}, head),
      make("tbody", {}, ...rows),
    );
    const hidden = every.length - found.length;
    const more = found.length - rows.length;
    this.note.textContent = [
      found.length ? "" : "None.",
      hidden ? `${hidden} do not match the search.` : "",
      more > 0 ? `${more} more: search for a name.` : "",
    ]
      .filter(Boolean)
      .join(" ");
  }

  /**
   * @param {Table} table
   * @param {{object: number, look: number, cells: string[]}} row
   */
  row(table, row) {
    const name =
      table.head.indexOf("NAME") >= 0
        ? table.head.indexOf("NAME")
        : table.name === "probe"
          ? 3
          : table.name === "device"
            ? 1
            : 0;
    const cells = row.cells.map((text, at) =>
      make("td", {}, at === name ? make("button", { type: "button", "data-object": String(row.object) }, text) : text),
    );
    return make("tr", { class: LOOKS[row.look], "data-selected": String(row.object === this.state.object) }, ...cells);
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const { object } = /** @type {HTMLElement} */ (event.target).dataset;
    if (object !== undefined) this.state.select(Number(object));
  }
}
