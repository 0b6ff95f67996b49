/** The numbers that theory gives for a lane, for display next to the measured ones. */

import { balanced, equilibrium, meanMaximum, settledThreshold, settleTimeBound, spreadOf } from "./equilibrium.js";

/**
 * @typedef {object} Predictions null where theory has nothing to say
 * @property {number[] | null} occupancy
 * @property {number | null} spread
 * @property {string | null} fullest
 * @property {string | null} messages per task
 * @property {string | null} threshold
 */

/**
 * @param {import("../sim/base.js").Spec} spec
 * @param {number} load per pool that is left
 * @param {number} threshold in force
 * @param {number} pools that are left
 * @param {boolean} undisturbed it started empty, and nothing was changed since
 * @returns {Predictions}
 */
export function predict(spec, load, threshold, pools, undisturbed) {
  const learns = spec.policy === "threshold" && spec.alpha !== null;
  const settled = learns ? settledThreshold(load, /** @type {string} */ (spec.alpha)) : null;
  const aim = settled !== null ? Math.min(Math.max(threshold, settled[0]), settled[1]) : threshold;
  const occupancy = equilibrium(spec, load, aim);
  return {
    occupancy,
    spread: occupancy === null ? null : spreadOf(occupancy),
    fullest: fullest(spec, occupancy, pools),
    messages: messages(spec),
    threshold: settled === null || spec.delay > 0 ? null : thresholds(settled, spec, load, undisturbed),
  };
}

/**
 * @param {import("../sim/base.js").Spec} spec
 * @param {number[] | null} occupancy
 * @param {number} pools
 */
function fullest(spec, occupancy, pools) {
  if (occupancy === null) return null;
  if (spec.policy === "random") return meanMaximum(occupancy, pools).toFixed(2); // pools are independent
  // In the limit: the highest level that at least one pool in `pools` is expected to reach.
  let level = 0;
  while ((occupancy[level + 1] ?? 0) * pools >= 0.5) level += 1;
  return `about ${level}`;
}

/** @param {import("../sim/base.js").Spec} spec */
function messages(spec) {
  if (spec.policy === "power-of-d") return String(2 * spec.choices);
  if (spec.policy === "jsq") return "1";
  if (spec.policy === "random" || spec.policy === "round-robin") return "0";
  return "at most 2";
}

/**
 * @param {[number, number]} settled
 * @param {import("../sim/base.js").Spec} spec
 * @param {number} load
 * @param {boolean} undisturbed
 */
function thresholds(settled, spec, load, undisturbed) {
  const [low, high] = settled;
  const where = low === high ? String(low) : `${low} to ${high}`;
  const bound = !undisturbed ? null : settleTimeBound(load, /** @type {string} */ (spec.alpha), spec.initial);
  return bound === null ? where : `${where}, by time ${bound.toFixed(2)}`;
}

/**
 * The spread of a balanced load, the least that whole tasks allow.
 * @param {number} load
 */
export function leastSpread(load) {
  return spreadOf(balanced(load));
}
