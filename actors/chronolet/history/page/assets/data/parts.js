"use strict";
// Decodes the parts of the page's data: base64 of a zlib stream, in script elements that the browser does not run.
// Input: the name of a part. Output: its value. Next: model.js, tables.js, texts.js.

/** @typedef {Uint8Array | Uint32Array | Float64Array} Numbers */

/** @param {string} text */
function bytesOf(text) {
  const decoder = /** @type {{fromBase64?: (text: string) => Uint8Array}} */ (/** @type {unknown} */ (Uint8Array));
  if (decoder.fromBase64) return decoder.fromBase64(text);
  const binary = atob(text); // in browsers of before 2025
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Uint8Array} bytes */
async function inflated(bytes) {
  const source = new Blob([/** @type {BlobPart} */ (bytes)]).stream();
  return new Response(source.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/**
 * Return the bytes of a part. `keep`: whether the part is needed again; otherwise its text is freed.
 * @param {string} name
 */
async function rawPart(name, keep = false) {
  const element = document.getElementById(`part-${name}`);
  if (!element) throw new Error(`the page has no part ${name}: it is not complete`);
  const text = element.textContent || "";
  if (!keep) element.remove();
  try {
    return await inflated(bytesOf(text));
  } catch (error) {
    throw new Error(`the part ${name} of the page is damaged (${error})`);
  }
}

/** @param {string} name */
async function jsonPart(name) {
  return JSON.parse(new TextDecoder().decode(await rawPart(name)));
}

/** @param {string} name */
async function u8Part(name) {
  return new Uint8Array(await rawPart(name));
}

/** @param {string} name */
async function u32Part(name) {
  return new Uint32Array(await rawPart(name));
}

/** @param {string} name */
async function f64Part(name) {
  return new Float64Array(await rawPart(name));
}

/**
 * Return the sums of differences, in place.
 * @param {Float64Array} differences
 */
function sums(differences) {
  for (let i = 1; i < differences.length; i++) differences[i] += differences[i - 1];
  return differences;
}
