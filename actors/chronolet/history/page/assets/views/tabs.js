"use strict";
// The tabs that select a panel. Input: clicks and keys. Output: which panel is visible. Next: main.js.

class Tabs {
  /** @param {PageState} state */
  constructor(state) {
    this.state = state;
    /** @type {HTMLElement[]} */
    this.tabs = [...document.querySelectorAll('[role="tab"]')].map((one) => /** @type {HTMLElement} */ (one));
    for (const tab of this.tabs) {
      tab.addEventListener("click", () => this.show(tab));
      tab.addEventListener("keydown", (event) => this.onKey(event));
    }
  }

  /** @param {HTMLElement} shown */
  show(shown) {
    for (const tab of this.tabs) {
      tab.setAttribute("aria-selected", String(tab === shown));
      tab.tabIndex = tab === shown ? 0 : -1;
      byId(tab.getAttribute("aria-controls") || "").hidden = tab !== shown;
    }
    this.state.changed();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    const at = this.tabs.findIndex((one) => one === event.target);
    if (step === undefined || at < 0) return;
    const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length];
    this.show(next);
    next.focus();
  }
}
