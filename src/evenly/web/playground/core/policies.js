/** Make a policy from its name: `evenly.core.make` for the policies that the playground offers. */

import { JoinBelowThreshold, JoinShortestQueue, PowerOfD, RandomRouting, RoundRobin } from "./baselines.js";
import { ThresholdPolicy } from "./threshold.js";

/**
 * @typedef {object} PolicySpec
 * @property {string} policy
 * @property {number} threshold where the threshold starts, or stays; jbt's own threshold
 * @property {string | null} alpha
 * @property {number} choices pools that power-of-d samples
 */

/** @typedef {ThresholdPolicy | import("./baselines.js").CountingPolicy} Policy */

/**
 * What the playground knows about each policy. `ranked`: pools with the same number of tasks are interchangeable, so
 * that `evenly simulate` knows levels only, and choices and departures go by rank. `late`: it can run with delays.
 * @type {Record<string, {title: string, ranked: boolean, late: boolean}>}
 */
export const POLICIES = {
  random: { title: "Random", ranked: true, late: true },
  "round-robin": { title: "Round robin", ranked: false, late: false },
  "power-of-d": { title: "Power of d choices", ranked: true, late: true },
  jsq: { title: "Join the shortest queue", ranked: true, late: true },
  jiq: { title: "Join an idle queue", ranked: false, late: false },
  jbt: { title: "Join below threshold", ranked: false, late: false },
  threshold: { title: "Threshold (the paper)", ranked: true, late: true },
};

/**
 * @param {PolicySpec} spec
 * @param {number} pools
 * @returns {Policy}
 */
export function makePolicy(spec, pools) {
  switch (spec.policy) {
    case "threshold":
      return new ThresholdPolicy(pools, spec.threshold, spec.alpha);
    case "jsq":
      return new JoinShortestQueue(pools);
    case "power-of-d":
      return new PowerOfD(pools, spec.choices);
    case "round-robin":
      return new RoundRobin(pools);
    case "jiq":
      return new JoinBelowThreshold(pools, 1);
    case "jbt":
      return new JoinBelowThreshold(pools, spec.threshold);
    case "random":
      return new RandomRouting(pools);
    default:
      throw new Error(`unknown policy ${spec.policy}`);
  }
}
