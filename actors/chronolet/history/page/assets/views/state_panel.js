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
    this.caption = make("caption");
    this.body = make("tbody");
    /** @type {Table | null} */
    this.shown = null;
    /** What was drawn last. */
    this.drawn = "";
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
    const { model, moment, search, object } = this.state;
    const table = model.tables[Number(this.select.value)];
    const drawn = `${table.name} ${moment.index} ${moment.now} ${search.run} ${object}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    if (table !== this.shown) this.setTable(table);
    const every = model.rows(table, moment);
    const found = search.active ? every.filter((one) => search.hits[one.object]) : every;
    const rows = found.slice(0, MOST_ROWS);
    while (this.body.children.length > rows.length) this.body.lastElementChild?.remove();
    while (this.body.children.length < rows.length) this.body.append(this.emptyRow(table));
    rows.forEach((row, at) => this.fill(/** @type {HTMLElement} */ (this.body.children[at]), row));
    this.caption.textContent = `${table.title} ${momentText(model, moment)}`;
    const hidden = every.length - found.length;
    const more = found.length - rows.length;
    const notes = [
      found.length ? "" : "None.",
      hidden ? `${hidden} do not match the search.` : "",
      more > 0 ? `${more} more: search for a name.` : "",
    ];
    this.note.textContent = notes.filter(Boolean).join(" ");
  }

  /** @param {Table} table */
  setTable(table) {
    this.shown = table;
    this.body.replaceChildren();
    const head = make("tr", {}, ...table.head.map((text) => make("th", { scope: "col" }, text)));
    this.table.replaceChildren(this.caption, make("thead", {}, head), this.body);
  }

  /**
   * Make a row. The cell with the object's name has a button, which selects it.
   * @param {Table} table
   */
  emptyRow(table) {
    const named = table.head.indexOf("NAME");
    const column = { probe: 3, device: 1 }[table.name] ?? Math.max(0, named);
    const cells = table.head.map((_, at) =>
      make("td", {}, ...(at === column ? [make("button", { type: "button" })] : [])),
    );
    return make("tr", {}, ...cells);
  }

  /**
   * @param {HTMLElement} element
   * @param {{object: number, look: number, cells: string[]}} row
   */
  fill(element, row) {
    element.className = LOOKS[row.look];
    element.dataset.selected = String(row.object === this.state.object);
    row.cells.forEach((text, at) => {
      const cell = element.children[at];
      const place = /** @type {HTMLElement} */ (cell.firstElementChild || cell);
      if (place !== cell) place.dataset.object = String(row.object);
      if (place.textContent !== text) place.textContent = text;
    });
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const { object } = /** @type {HTMLElement} */ (event.target).dataset;
    if (object !== undefined) this.state.select(Number(object));
  }
}
