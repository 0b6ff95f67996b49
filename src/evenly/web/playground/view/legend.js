/** The legend: what the scene draws, and nothing else. */

import { byId, make } from "../../common/dom.js";
import { Fluid } from "../theory/fluid.js";
import { hasTokens } from "./state.js";

/** @typedef {import("../sim/base.js").Spec} Spec */

/**
 * Each key with its words, and whether a system draws it.
 * @type {[string, string, (spec: Spec) => boolean][]}
 */
const KEYS = [
  ["task", "a task", () => true],
  ["over", "a task above an even share", () => true],
  ["dots", "an even share", () => true],
  ["bar", "the threshold", (spec) => spec.policy === "threshold"],
  ["disc", "green token: fewer tasks than the threshold", hasTokens],
  ["diamond", "yellow token: exactly the threshold", (spec) => spec.policy === "threshold"],
  ["triangle", "question, answer or report", (spec) => spec.policy === "power-of-d" || spec.policy === "jsq"],
  ["drift", "thin line, drifting down: the pools are told a new threshold", isTold],
  ["ring", "token that a new threshold calls for", isTold],
  ["tick", "predicted number of pools, once settled", (spec) => Fluid.knows(spec)],
];

/**
 * Whether pools are told a new threshold at once. If messages take time, tasks carry it.
 * @param {Spec} spec
 */
function isTold(spec) {
  return spec.policy === "threshold" && spec.delay === 0;
}

/** @param {Spec[]} specs */
export function showLegend(specs) {
  const shown = KEYS.filter(([, , draws]) => specs.some(draws));
  const items = shown.map(([key, words]) => make("li", {}, make("span", { class: `key ${key}` }), words));
  byId("legend", HTMLUListElement).replaceChildren(...items);
}
