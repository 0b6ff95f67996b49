/**
 * A system whose messages take no time: a policy of `core/`, driven event by event.
 *
 * It makes the decisions of `evenly.core` with the random numbers of `evenly simulate`. Where the Python kernels know
 * levels only, a choice goes by rank, from the emptiest pool up.
 */

import { JoinBelowThreshold } from "../core/baselines.js";
import { makePolicy, POLICIES } from "../core/policies.js";
import { ThresholdPolicy } from "../core/threshold.js";
import { BaseSystem, NOTICE, POLL, REPLY, TASK } from "./base.js";

export class InstantSystem extends BaseSystem {
  /** @param {import("./base.js").Spec} spec */
  constructor(spec) {
    super(spec, !POLICIES[spec.policy].ranked);
    this.policy = makePolicy(spec, spec.pools);
    for (let pool = 0; pool < spec.pools; pool += 1) this.policy.join(pool, this.ranked.level[pool]);
    this.policy.messages.sent.fill(0); // the pools of time 0 are known
    /** @type {number[]} ranks that the current task has sampled, in order */
    this.taken = [];
  }

  /**
   * Simulate up to a time, for at most `budget` events. Return the number of events.
   * @param {number} until
   * @param {number} budget
   */
  advance(until, budget) {
    const { ledger, streams } = this;
    let count = 0;
    while (this.nextTime <= until && count < budget) {
      ledger.time = this.nextTime;
      ledger.passTime();
      ledger.events += 1;
      count += 1;
      const task = this._departing(streams.events.values[streams.position]);
      if (task < 0) this._arrive();
      else this.policy.depart(this._removeTask(task));
      streams.next();
      this._setRate(streams.holding.values[streams.position]);
    }
    if (this.nextTime > until) ledger.time = until;
    return count;
  }

  /** @param {import("./base.js").Action} action */
  apply(action) {
    if (!this.accepts(action)) return;
    const { type, value } = action;
    if (type === "load") this._setLoad(value);
    else if (type === "average") this.ledger.startAverages(this._sent(), this._withoutToken());
    else if (type === "kill") this._kill(value);
    else if (type === "revive") this._revive(value);
    else if (this.policy instanceof ThresholdPolicy) {
      this.policy.setThreshold(value);
      this._noteThreshold();
    }
  }

  get threshold() {
    return this.ledger.threshold;
  }

  averages() {
    return this.ledger.averages(this._sent(), this._withoutToken());
  }

  _sent() {
    return this.policy.messages.sent;
  }

  _withoutToken() {
    const { policy } = this;
    if (policy instanceof ThresholdPolicy) return policy.dispatcher.withoutToken;
    return policy instanceof JoinBelowThreshold ? policy.withoutToken : 0;
  }

  /**
   * The token that the dispatcher holds of a pool: 2 green, 1 yellow, 0 none.
   * @param {number} pool
   */
  token(pool) {
    const { policy } = this;
    if (policy instanceof ThresholdPolicy) {
      return policy.dispatcher.green.has(pool) ? 2 : policy.dispatcher.yellow.has(pool) ? 1 : 0;
    }
    return policy instanceof JoinBelowThreshold && policy.tokens.has(pool) ? 2 : 0;
  }

  /** @param {import("./base.js").Traffic | null} traffic */
  watch(traffic) {
    this.traffic = traffic;
    let answers = false; // a poll and its answer take turns
    this.policy.messages.listener = (kind, pool) => {
      const polls = this.spec.policy === "power-of-d";
      if (traffic !== null) traffic(!polls ? kind : answers ? REPLY : POLL, pool, this.time, this.time);
      answers = !answers;
    };
  }

  _arrive() {
    const { policy, streams, ledger } = this;
    ledger.arrivals += 1;
    if (this.spec.policy === "power-of-d") {
      streams.reserve(Math.min(this.spec.choices, policy.pools.length));
      this.taken.length = 0;
    }
    const pool = policy.arrive((candidates, length) => this._choose(candidates, length));
    this._addTask(pool);
    if (this.traffic !== null) this.traffic(TASK, pool, ledger.time, ledger.time);
    this._noteThreshold();
  }

  /**
   * @param {import("../core/poolset.js").PoolSet} candidates
   * @param {number} length
   */
  _choose(candidates, length) {
    const rank = Math.floor(this.streams.choice() * length);
    if (this.owner !== null) return candidates.items[rank];
    return this.ranked.order[this.spec.policy === "power-of-d" ? this._distinct(rank) : rank];
  }

  /**
   * Return a rank among those that the task has not sampled yet.
   * @param {number} rank
   */
  _distinct(rank) {
    let index = 0;
    while (index < this.taken.length && this.taken[index] <= rank) {
      rank += 1;
      index += 1;
    }
    this.taken.splice(index, 0, rank);
    return rank;
  }

  _noteThreshold() {
    const { policy, ledger } = this;
    if (!(policy instanceof ThresholdPolicy) || policy.threshold === ledger.threshold) return;
    ledger.setThreshold(policy.threshold);
    if (this.traffic !== null) this.traffic(NOTICE, -1, ledger.time, ledger.time);
  }

  /** @param {number} pool */
  _kill(pool) {
    const left = this._left();
    const tasks = this._removePool(pool);
    this.policy.leave(pool);
    for (let task = 0; task < tasks; task += 1) this._arrive();
    this._setRate(left);
  }

  /** @param {number} pool */
  _revive(pool) {
    this._addPool(pool);
    this.policy.join(pool, 0);
  }
}
