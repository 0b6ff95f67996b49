// What screen readers hear of changes, without being flooded: at most one announcement per pause.

import { byId } from "./dom.js";

const PAUSE_MS = 1500;
const MOST = 3;

/** @type {string[]} */
let waiting = [];
/** @type {number | undefined} */
let timer;

/**
 * Announce a sentence in the page's live region, `<div id="live" role="status">`. Sentences that come together are
 * read together; of more than three, the last three.
 *
 * @param {string} sentence
 */
export function announce(sentence) {
  waiting.push(sentence);
  if (timer === undefined) timer = window.setTimeout(speak, 50);
}

function speak() {
  if (waiting.length === 0) {
    timer = undefined;
    return;
  }
  byId("live", HTMLElement).textContent = waiting.slice(-MOST).join(" ");
  waiting = [];
  timer = window.setTimeout(speak, PAUSE_MS);
}
