/**
 * The paper's two roles, dispatcher and pool, and the rule that learns the threshold.
 *
 * The rules are those of `evenly.core` (dispatcher.py, pool.py, learning.py). Tests replay histories made by Python
 * and compare every decision. Without checks of input: the only caller is the simulation.
 *
 * Paper: Sec. 2.1, and Sec. 4.1.
 */

import { GREEN, YELLOW } from "./messages.js";
import { PoolSet } from "./poolset.js";

/** No token: the dispatcher can do without. */
export const NO_COLOR = -1;

/** The rule that moves the threshold, from token counts alone. Decides on integers, from the decimal as written. */
export class LearningRule {
  /** @param {string} alpha a decimal such as "0.93" */
  constructor(alpha) {
    const digits = alpha.split(".")[1] ?? "";
    this.denominator = 10 ** digits.length;
    this.numerator = Math.round(Number(alpha) * this.denominator);
  }

  /**
   * Return +1, 0 or -1. Both rules at once cancel.
   * @param {number} pools
   * @param {number} green tokens
   * @param {number} yellow tokens
   */
  step(pools, green, yellow) {
    const rise = yellow <= 1 ? 1 : 0;
    const fall = (pools - green) * this.denominator <= pools * this.numerator ? 1 : 0;
    return rise - fall;
  }
}

/** Estimates each pool's tasks, picks a pool for each task and learns the threshold. */
export class Dispatcher {
  /**
   * @param {number} size pools are numbered from 0 to size - 1
   * @param {number} threshold
   * @param {LearningRule | null} rule
   */
  constructor(size, threshold, rule) {
    this.threshold = threshold;
    this.rule = rule;
    this.pools = new PoolSet(size);
    this.green = new PoolSet(size);
    this.yellow = new PoolSet(size);
    this.estimates = new Int32Array(size).fill(-1); // -1: not a member, or has not reported yet
    this.pendingStep = 0;
    this.withoutToken = 0; // tasks that found no token
  }

  /** @param {number} pool */
  join(pool) {
    this.pools.add(pool);
  }

  /** @param {number} pool */
  leave(pool) {
    this.pools.discard(pool);
    this.estimates[pool] = -1;
    this.green.discard(pool);
    this.yellow.discard(pool);
  }

  /**
   * Pick a pool and count the task in. The rule sees the tokens before that; `learn` applies its step.
   * @param {import("./messages.js").Choose} choose
   */
  dispatch(choose) {
    const pools = this.pools.length;
    const green = this.green.length;
    const yellow = this.yellow.length;
    const candidates = green > 0 ? this.green : yellow > 0 ? this.yellow : this.pools;
    const pool = choose(candidates, candidates.length);
    if (yellow === 0) this.withoutToken += 1;
    if (this.rule !== null) this.pendingStep = this.rule.step(pools, green, yellow);
    if (this.estimates[pool] >= 0) this._setEstimate(pool, this.estimates[pool] + 1);
    return pool;
  }

  /**
   * Take in a report.
   * @param {number} pool
   * @param {number} tasks
   */
  receive(pool, tasks) {
    if (this.pools.has(pool)) this._setEstimate(pool, tasks);
  }

  /** Apply the rule's step from the last dispatch; return true if the threshold changes. */
  learn() {
    const step = this.pendingStep;
    this.pendingStep = 0;
    if (step === 0 || this.threshold + step < 0) return false;
    this.restart(this.threshold + step);
    return true;
  }

  /**
   * Set the threshold. Tokens are rebuilt in the order of the members.
   * @param {number} threshold
   */
  restart(threshold) {
    this.threshold = threshold;
    this.green.clear();
    this.yellow.clear();
    for (const pool of this.pools.items) {
      const estimate = this.estimates[pool];
      if (estimate < 0) continue;
      if (estimate < threshold) this.green.add(pool);
      if (estimate <= threshold) this.yellow.add(pool);
    }
  }

  /**
   * @param {number} pool
   * @param {number} estimate
   */
  _setEstimate(pool, estimate) {
    this.estimates[pool] = estimate;
    const above = estimate - this.threshold;
    if (above < 0) this.green.add(pool);
    else this.green.discard(pool);
    if (above <= 0) this.yellow.add(pool);
    else this.yellow.discard(pool);
  }
}

/** A server pool: its tasks, and the threshold that it knows. Its methods return the color of a report. */
export class Pool {
  /**
   * @param {number} tasks
   * @param {number} threshold
   * @param {boolean} everyDeparture report all departures below the threshold, where messages take time
   */
  constructor(tasks, threshold, everyDeparture) {
    this.tasks = tasks;
    this.threshold = threshold;
    this.everyDeparture = everyDeparture;
  }

  /** Take a task. If the pool is still green, it replaces the token that the dispatcher discarded. */
  arrive() {
    this.tasks += 1;
    return this.tasks < this.threshold ? GREEN : NO_COLOR;
  }

  /** Finish a task. If the pool turns green or yellow by this, it announces that. */
  depart() {
    this.tasks -= 1;
    const below = this.threshold - this.tasks;
    if (below === 0) return YELLOW;
    return below === 1 || (this.everyDeparture && below > 0) ? GREEN : NO_COLOR;
  }

  /**
   * Take over a threshold. Return true if the dispatcher lacks a token of this pool.
   * @param {number} threshold
   */
  rethreshold(threshold) {
    const old = this.threshold;
    this.threshold = threshold;
    const known = threshold > old ? this.tasks <= old : this.tasks === threshold && threshold === old - 1;
    return this.tasks <= threshold && !known;
  }
}
