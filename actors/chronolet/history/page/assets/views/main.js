"use strict";
// Starts the page: reads the data, connects the views, follows links. `page` is for tests and for a browser's console.

/** @type {{state: PageState | null, ready: Promise<void>, milliseconds: number}} */
const page = { state: null, ready: Promise.resolve(), milliseconds: 0 };

async function start() {
  if (typeof DecompressionStream === "undefined")
    throw new Error("this browser is too old: it lacks DecompressionStream");
  const model = await Model.read();
  if (!model.count) throw new Error("no events were recorded in this part of the log");
  const state = new PageState(model);
  page.state = state;
  byId("span").textContent =
    `${model.summary.node}: ${model.count} events, ${utc(model.timeOf(0))} to ${utc(model.timeOf(model.count - 1))}`;
  new Timeline(state);
  new MomentBar(state);
  new EntryList(state);
  new StatePanel(state);
  new ObjectPanel(state);
  new Tabs(state);
  connectSearch(state);
  connectLinks(state);
  byId("app").hidden = false;
  byId("loading").remove();
  state.render();
  page.milliseconds = performance.now();
}

/** @param {PageState} state */
function connectSearch(state) {
  const query = /** @type {HTMLInputElement} */ (byId("query"));
  const inTexts = /** @type {HTMLInputElement} */ (byId("in-texts"));
  const level = /** @type {HTMLSelectElement} */ (byId("level"));
  const only = /** @type {HTMLInputElement} */ (byId("only-object"));
  const name = byId("only-name");
  const nothing = name.textContent;
  let timer = 0;
  /** The object to which the list is limited; it stays, although each event that is chosen selects its own object. */
  let pinned = -1;
  const search = () => {
    const family = pinned < 0 ? [] : state.lanes.family(pinned);
    const wanted = { query: query.value, inTexts: inTexts.checked, level: level.value, family };
    state.search.start(wanted, () => state.changed()).catch((error) => announce(`search: ${error.message}`));
  };
  query.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 150);
  });
  byId("search").addEventListener("submit", (event) => event.preventDefault());
  const pin = () => {
    if (only.checked && state.object < 0) announce("no object is selected");
    only.checked = only.checked && state.object >= 0;
    pinned = only.checked ? state.object : -1;
    name.textContent = pinned < 0 ? nothing : nameOf(state.model, pinned);
    search();
  };
  for (const one of [inTexts, level]) one.addEventListener("change", search);
  only.addEventListener("change", pin);
  search();
}

/** @param {PageState} state */
function connectLinks(state) {
  const follow = () => {
    if (!location.hash || location.hash === shown) return;
    const { object, moment, error } = linked(state.model, location.hash);
    if (error) announce(error);
    if (moment) state.setMoment(moment);
    if (object >= 0) state.select(object);
  };
  let shown = "";
  addEventListener("hashchange", follow);
  follow();
  let timer = 0;
  state.listen(() => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      // browsers limit how often an address may change
      shown = linkOf(state.model, state.object, state.moment);
      history.replaceState(null, "", shown);
      shown = location.hash;
    }, 300);
  });
}

page.ready = start().catch((error) => {
  byId("loading").textContent = `The page cannot be shown: ${error instanceof Error ? error.message : error}`;
  throw error;
});
