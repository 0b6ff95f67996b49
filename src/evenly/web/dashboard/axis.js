// The axis of the columns: the range of sessions that it shows, and the thresholds beside it.

import { color } from "../common/theme.js";

/** @typedef {import("./model.js").Model} Model */

const LEAST_SPAN = 3; // sessions shown above and below the threshold, at least

/**
 * Return the range to show. It begins above 0 if the columns are much taller than their differences.
 *
 * @param {Model} model
 */
export function wantedRange(model) {
  let most = 0;
  let fewest = Infinity;
  for (let at = 0; at < model.sessions.length; at += 1) {
    const sessions = model.sessions[at] ?? 0;
    most = Math.max(most, sessions);
    if (model.evenStates.includes(model.stateOf(at))) fewest = Math.min(fewest, sessions);
  }
  const highest = Math.max(...thresholdsOf(model));
  const threshold = model.weights === null ? (model.figures?.threshold ?? most) : Math.max(most, highest);
  fewest = Math.min(fewest, threshold);
  const high = Math.max(most, threshold + 1) + Math.max(1, (most - fewest) * 0.08);
  const span = Math.max(LEAST_SPAN, (high - fewest) * 1.5);
  const low = fewest - span <= fewest / 2 || fewest <= 12 ? 0 : Math.floor(fewest - span);
  return { low, high };
}

/**
 * Write the thresholds of all weights beside the axis, as far as there is room.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Model} model
 * @param {number} scale
 * @param {number} x
 * @param {(sessions: number) => number} yOf
 */
export function nameThresholds(context, model, scale, x, yOf) {
  const size = 12 * scale;
  context.font = `600 ${size}px ${color("--font")}`;
  context.textAlign = "right";
  let last = Infinity;
  for (const threshold of [...new Set(thresholdsOf(model))].sort((one, other) => one - other)) {
    const y = yOf(threshold) + size / 3;
    if (last - y < size) continue;
    context.fillText(String(threshold), x, y);
    last = y;
  }
}

/** @param {Model} model @returns {number[]} */
function thresholdsOf(model) {
  return Object.values(model.figures?.thresholds ?? {}).filter((each) => each !== null);
}
