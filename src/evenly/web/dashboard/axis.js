// The axis of the columns: where it ends, and the thresholds beside it.

import { color } from "../common/theme.js";

/** @typedef {import("./model.js").Model} Model */

const ROOM = 1.08; // above the highest column, for the shape of its token

/**
 * Return the sessions at the top of the axis. Columns begin at 0: a shorter one has fewer sessions in proportion.
 *
 * @param {Model} model
 */
export function wantedTop(model) {
  const most = model.sessions.reduce((one, other) => Math.max(one, other), 0);
  const thresholds = model.weights === null ? [model.figures?.threshold ?? 0] : thresholdsOf(model);
  return ROOM * Math.max(most, 1 + Math.max(...thresholds, 0));
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
