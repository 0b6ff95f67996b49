/**
 * The paper's policy: one dispatcher and its pools, connected by a channel that delivers instantly.
 *
 * Wiring only, as in `evenly.core.threshold`. The rules are in the dispatcher and the pool.
 */

import { Dispatcher, LearningRule, NO_COLOR, Pool } from "./dispatcher.js";
import { MessageCount, RESYNC } from "./messages.js";

export class ThresholdPolicy {
  /**
   * @param {number} size
   * @param {number} threshold
   * @param {string | null} alpha learn the threshold with this alpha; null: it stays
   */
  constructor(size, threshold, alpha) {
    this.dispatcher = new Dispatcher(size, threshold, alpha === null ? null : new LearningRule(alpha));
    /** @type {(Pool | null)[]} */
    this.members = new Array(size).fill(null);
    this.messages = new MessageCount();
  }

  get pools() {
    return this.dispatcher.pools;
  }

  get threshold() {
    return this.dispatcher.threshold;
  }

  /** @param {number} pool */
  tasks(pool) {
    return this._member(pool).tasks;
  }

  /**
   * Add a pool that has `tasks` tasks already. It reports them.
   * @param {number} pool
   * @param {number} tasks
   */
  join(pool, tasks) {
    this.dispatcher.join(pool);
    this.members[pool] = new Pool(tasks, this.dispatcher.threshold, false);
    this._resync(pool, tasks <= this.dispatcher.threshold);
  }

  /** @param {number} pool */
  leave(pool) {
    this.dispatcher.leave(pool);
    this.members[pool] = null;
  }

  /**
   * Place a task, let its pool replace the token if one is due, and only then adjust the threshold.
   * @param {import("./messages.js").Choose} choose
   */
  arrive(choose) {
    const pool = this.dispatcher.dispatch(choose);
    this._deliver(pool, this._member(pool).arrive());
    if (this.dispatcher.learn()) this._rethreshold();
    return pool;
  }

  /** @param {number} pool */
  depart(pool) {
    this._deliver(pool, this._member(pool).depart());
  }

  /**
   * Set the threshold by hand.
   * @param {number} threshold
   */
  setThreshold(threshold) {
    this.dispatcher.restart(threshold);
    this._rethreshold();
  }

  /** @param {number} pool */
  _member(pool) {
    return /** @type {Pool} */ (this.members[pool]);
  }

  /**
   * @param {number} pool
   * @param {number} color
   */
  _deliver(pool, color) {
    if (color === NO_COLOR) return;
    this.messages.count(color, pool);
    this.dispatcher.receive(pool, this._member(pool).tasks);
  }

  _rethreshold() {
    const { threshold } = this.dispatcher;
    for (const pool of this.dispatcher.pools.items) {
      if (this._member(pool).rethreshold(threshold)) this._resync(pool, true);
    }
  }

  /**
   * Take in a report that no task has caused.
   * @param {number} pool
   * @param {boolean} token it brings a token that the dispatcher lacks
   */
  _resync(pool, token) {
    if (token) this.messages.count(RESYNC, pool);
    this.dispatcher.receive(pool, this._member(pool).tasks);
  }
}
