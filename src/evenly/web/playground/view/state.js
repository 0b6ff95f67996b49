/**
 * The state of the playground, which lives in the address: a link reproduces a run to the last event.
 *
 * Everything in an address is checked: it comes from outside.
 */

import { POLICIES } from "../core/policies.js";
import { MOST_ACTIONS } from "../engine/engine.js";

/**
 * @typedef {object} Lane one policy
 * @property {string} policy
 * @property {number} threshold
 * @property {string | null} alpha
 * @property {number} choices
 */

/** @typedef {import("../engine/engine.js").TimedAction} TimedAction */

/**
 * @typedef {object} State
 * @property {string} scene
 * @property {number} seed
 * @property {number} pools
 * @property {number} load
 * @property {number} delay
 * @property {number} initial tasks in each pool at time 0
 * @property {number} speed mean task times per second
 * @property {Lane[]} lanes
 * @property {TimedAction[]} actions
 * @property {number} time
 */

/** The allowed values, which sliders show and addresses must respect. */
export const LIMITS = {
  seed: [0, 2 ** 53 - 1],
  pools: [2, 1000],
  load: [0.1, 30],
  alpha: [0.01, 0.9999],
  choices: [1, 4],
  delay: [0, 2],
  initial: [0, 30],
  threshold: [0, 60],
  speed: [0.02, 50],
  time: [0, 500],
};
export const MOST_LANES = 4;
const ACTION = /^(load|kill|revive|threshold|average)@([0-9.e-]{1,32})=([0-9.]{1,12})(?:\/([0-3]))?$/;
const NUMBER = /^[0-9]{1,16}(\.[0-9]{1,26})?(e-[0-9]{1,2})?$/; // as browsers write numbers, without a sign

/**
 * Read a plain decimal within limits; null if it is none.
 * @param {string | null | undefined} text
 * @param {keyof typeof LIMITS} name
 */
function readNumber(text, name) {
  if (text === null || text === undefined || !NUMBER.test(text)) return null;
  const value = Number(text);
  const [low, high] = LIMITS[name];
  return value >= low && value <= high ? value : null;
}

/**
 * Read a whole number within limits; null if it is none.
 * @param {string | null | undefined} text
 * @param {keyof typeof LIMITS} name
 */
function readWhole(text, name) {
  const value = readNumber(text, name);
  return value !== null && Number.isSafeInteger(value) ? value : null;
}

/**
 * Write a lane as in an address: `threshold:t0:a0.93`, `power-of-d:d2`.
 * @param {Lane} lane
 */
export function writeLane(lane) {
  const parts = [lane.policy];
  if (lane.policy === "threshold" || lane.policy === "jbt") parts.push(`t${lane.threshold}`);
  if (lane.policy === "threshold" && lane.alpha !== null) parts.push(`a${lane.alpha}`);
  if (lane.policy === "power-of-d") parts.push(`d${lane.choices}`);
  return parts.join(":");
}

/**
 * @param {string} text
 * @returns {Lane | null}
 */
export function readLane(text) {
  const [policy, ...parts] = text.split(":");
  if (!Object.hasOwn(POLICIES, policy)) return null;
  /** @type {Lane} */
  const lane = { policy, threshold: 0, alpha: null, choices: 2 };
  for (const part of parts) {
    const value = part.slice(1);
    const threshold = part.startsWith("t") ? readWhole(value, "threshold") : null;
    const choices = part.startsWith("d") ? readWhole(value, "choices") : null;
    const alpha = part.startsWith("a") && /^0\.[0-9]{1,4}$/.test(value) ? readNumber(value, "alpha") : null;
    if (threshold !== null) lane.threshold = threshold;
    else if (choices !== null) lane.choices = choices;
    else if (alpha !== null && policy === "threshold") lane.alpha = value;
    else return null;
  }
  return policy === "jbt" && lane.threshold < 1 ? null : lane;
}

/** @param {TimedAction} action */
function writeAction(action) {
  return `${action.type}@${action.time}=${action.value}${action.lane < 0 ? "" : `/${action.lane}`}`;
}

/**
 * @param {string} text
 * @param {number} pools
 * @returns {TimedAction | null}
 */
function readAction(text, pools) {
  const found = ACTION.exec(text);
  if (found === null) return null;
  const type = /** @type {TimedAction["type"]} */ (found[1]);
  const time = readNumber(found[2], "time");
  const value = type === "load" ? readNumber(found[3], "load") : readWhole(found[3], "threshold");
  const pool = type === "kill" || type === "revive" ? Number(found[3]) : null;
  if (time === null || (pool === null ? value === null : !Number.isInteger(pool) || pool >= pools)) return null;
  return { type, time, value: pool ?? value ?? 0, lane: found[4] === undefined ? -1 : Number(found[4]) };
}

/**
 * Write the state as the fragment of an address.
 * @param {State} state
 */
export function writeState(state) {
  return [
    `scene=${state.scene}`,
    `seed=${state.seed}`,
    `pools=${state.pools}`,
    `load=${state.load}`,
    `lanes=${state.lanes.map(writeLane).join(",")}`,
    `delay=${state.delay}`,
    `initial=${state.initial}`,
    `speed=${state.speed}`,
    `do=${state.actions.map(writeAction).join(";")}`,
    `t=${state.time}`,
  ].join("&");
}

/**
 * Read the fragment of an address. What is missing comes from the scene. Null if something is not allowed.
 * @param {string} fragment without #
 * @param {(scene: string) => State | null} defaults
 * @returns {State | null}
 */
export function readState(fragment, defaults) {
  if (fragment.length > 40_000) return null;
  /** @type {Map<string, string>} */
  const given = new Map();
  for (const part of fragment.split("&")) {
    const at = part.indexOf("=");
    if (at > 0) given.set(part.slice(0, at), part.slice(at + 1));
  }
  const state = defaults(given.get("scene") ?? "");
  if (state === null) return null;
  /** @type {[string, keyof typeof LIMITS & keyof State, boolean][]} */
  const numbers = [
    ["seed", "seed", true],
    ["pools", "pools", true],
    ["load", "load", false],
    ["delay", "delay", false],
    ["initial", "initial", true],
    ["speed", "speed", false],
    ["t", "time", false],
  ];
  for (const [key, name, whole] of numbers) {
    if (!given.has(key)) continue;
    const value = (whole ? readWhole : readNumber)(given.get(key), name);
    if (value === null) return null;
    state[name] = value;
  }
  const lanes = given.get("lanes")?.split(",").map(readLane);
  if (lanes !== undefined) {
    if (lanes.length > MOST_LANES || lanes.includes(null)) return null;
    state.lanes = /** @type {Lane[]} */ (lanes);
  }
  if (given.has("do")) {
    const texts = (given.get("do") ?? "").split(";").filter((text) => text !== "");
    const actions = texts.map((text) => readAction(text, state.pools));
    if (actions.length > MOST_ACTIONS || actions.includes(null)) return null;
    state.actions = /** @type {TimedAction[]} */ (actions);
  }
  return state;
}

/**
 * The systems of a state. Policies that know no delay run without.
 * @param {State} state
 * @returns {import("../sim/base.js").Spec[]}
 */
export function specsOf(state) {
  return state.lanes.map((lane) => ({
    ...lane,
    pools: state.pools,
    load: state.load,
    delay: POLICIES[lane.policy].late ? state.delay : 0,
    exponential: false,
    initial: state.initial,
    seed: state.seed,
  }));
}

/** Whether the dispatcher of a policy holds tokens. @param {{policy: string}} lane */
export function hasTokens({ policy }) {
  return policy === "threshold" || policy === "jbt" || policy === "jiq";
}

/** Time in which the start of a run, or a change, fades: 5 % of the difference in load is left. */
export const SETTLE = 3;

/**
 * What the averages of a run cover: where they begin, the last change before now, and whether all of it is settled.
 * @param {TimedAction[]} actions
 * @param {number} time
 */
export function coverage(actions, time) {
  const past = actions.filter((action) => action.time < time || (action.time === time && action.type !== "average"));
  const latest = (/** @type {boolean} */ average) =>
    past.reduce((last, action) => ((action.type === "average") === average ? Math.max(last, action.time) : last), 0);
  const [since, changed] = [latest(true), latest(false)];
  return { since, changed, settled: since >= changed + SETTLE - 1e-9, disturbed: past.some(({ type }) => type !== "average") };
}

/**
 * The title of a lane, with its parameters.
 * @param {Lane} lane
 */
export function laneTitle(lane) {
  if (lane.policy === "threshold") {
    return lane.alpha === null ? "Threshold set by hand" : `Learning threshold, α ${lane.alpha}`;
  }
  if (lane.policy === "power-of-d") return lane.choices === 1 ? "One choice: random" : `Best of ${lane.choices} choices`;
  return lane.policy === "jbt" ? `Join below ${lane.threshold}` : POLICIES[lane.policy].title;
}
