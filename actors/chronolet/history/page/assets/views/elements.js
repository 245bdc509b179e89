"use strict";
// Finds and makes elements. Texts of the log only ever become text nodes, so nothing in them is markup.

/**
 * Return the page's element with this id.
 * @template {HTMLElement} T
 * @param {string} id
 * @returns {T}
 */
function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return /** @type {T} */ (found);
}

/**
 * @param {string} tag
 * @param {{[name: string]: string}} attributes
 * @param {(Node | string)[]} children
 */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Make a button that calls a function.
 * @param {string} text
 * @param {() => void} action
 * @param {{[name: string]: string}} attributes
 */
function button(text, action, attributes = {}) {
  const element = make("button", { type: "button", ...attributes }, text);
  element.addEventListener("click", action);
  return element;
}

/**
 * Give a canvas the size of its element in device pixels, and return its context with one unit for each CSS pixel.
 * @param {HTMLCanvasElement} canvas
 */
function cleared(canvas) {
  const scale = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [right, bottom] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== right || canvas.height !== bottom) [canvas.width, canvas.height] = [right, bottom];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

let announcing = 0;

/** Show a message, which screen readers speak. @param {string} text */
function announce(text) {
  clearTimeout(announcing); // it would hide this message
  byId("status").textContent = text;
}

/** Announce a text when nothing else has been announced for a moment. @param {() => string} text */
function announceSoon(text) {
  clearTimeout(announcing);
  announcing = setTimeout(() => announce(text()), 600);
}
