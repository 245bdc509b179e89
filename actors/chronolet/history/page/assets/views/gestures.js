"use strict";
// Mouse and touch on the timeline: a click sets the moment, a drag moves the window, the wheel with Ctrl and a pinch
// zoom. Vertical movements scroll the lanes, as the browser does it. Input: events. Output: changes of the page's
// state.

const CLICK_PIXELS = 5;

class Gestures {
  /**
   * @param {PageState} state
   * @param {HTMLCanvasElement} canvas
   * @param {(y: number) => void} onClick
   */
  constructor(state, canvas, onClick) {
    this.state = state;
    this.canvas = canvas;
    this.onClick = onClick;
    /** Where each finger or the mouse is. @type {Map<number, {x: number, y: number}>} */
    this.pointers = new Map();
    this.moved = 0;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /** @param {PointerEvent} event */
  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    if (!this.pointers.size) this.moved = 0;
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
  }

  /** @param {PointerEvent} event */
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const { window } = this.state;
    const width = this.canvas.clientWidth;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId);
    this.moved += Math.abs(event.offsetX - before.x) + Math.abs(event.offsetY - before.y);
    if (other) {
      const [was, is] = [Math.abs(before.x - other[1].x), Math.abs(event.offsetX - other[1].x)];
      window.zoom(Math.max(is, 8) / Math.max(was, 8), window.time(other[1].x, width));
    } else if (this.moved > CLICK_PIXELS) {
      window.move(((before.x - event.offsetX) / width) * window.length);
    }
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.state.changed();
  }

  /** @param {PointerEvent} event */
  up(event) {
    this.pointers.delete(event.pointerId);
    if (this.moved > CLICK_PIXELS || this.pointers.size) return;
    const time = this.state.window.time(event.offsetX, this.canvas.clientWidth);
    this.state.setMoment(this.state.model.momentOf(Math.round(time)));
    this.onClick(event.offsetY);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const { window } = this.state;
    const width = this.canvas.clientWidth;
    if (event.ctrlKey || event.metaKey) window.zoom(Math.exp(-event.deltaY / 200), window.time(event.offsetX, width));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      window.move(((event.deltaX || event.deltaY) / width) * window.length);
    } else return;
    event.preventDefault();
    this.state.changed();
  }
}
