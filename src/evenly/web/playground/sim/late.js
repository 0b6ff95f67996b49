/**
 * A system where tasks and messages take time: the protocol of `evenly.core.protocol`, as `evenly.sim.kernels.delayed`
 * simulates it, decision for decision.
 *
 * A message says how many tasks the pool has and how many arrivals it has seen. The dispatcher's estimate is that count
 * plus its own picks not yet seen, and a task goes to a pool with the smallest estimate. Tasks carry the threshold.
 */

import { LearningRule, NO_COLOR, Pool } from "../core/dispatcher.js";
import { OTHER, RESYNC } from "../core/messages.js";
import { PoolSet } from "../core/poolset.js";
import { BaseSystem, POLL, REPLY, TASK } from "./base.js";
import { Flight } from "./flight.js";
import { Ranked } from "./ranked.js";
import { newDelays } from "./rng.js";

const REPORT = 9; // from a pool to the dispatcher: tasks, arrivals, sequence number, life
const DEPARTURE = 10;

/**
 * A poll under way: answers to come, fewest tasks so far, which pool had them, and the pools.
 * @typedef {{left: number, tasks: number, best: number, pools: number[]}} Poll
 */

export class LateSystem extends BaseSystem {
  /** @param {import("./base.js").Spec} spec */
  constructor(spec) {
    super(spec, true);
    const { pools } = spec;
    const levels = this.ranked.level;
    this.flight = new Flight();
    this.delays = newDelays(spec.seed, spec.delay, spec.exponential);
    this.sent = [0, 0, 0, 0];
    this.members = new PoolSet(pools);
    this.arrived = new Int32Array(pools);
    this.sequence = new Int32Array(pools);
    this.picks = new Int32Array(pools);
    this.heard = new Int32Array(pools);
    this.version = new Int32Array(pools); // the number of the pick that brought the pool's threshold
    this.lives = new Int32Array(pools); // how often each pool has left
    const learns = spec.policy === "threshold" && spec.alpha !== null;
    this.rule = learns ? new LearningRule(/** @type {string} */ (spec.alpha)) : null;
    this.withoutToken = 0; // tasks that found no token
    /** @type {Pool[]} */
    this.pools = [];
    this.estimates = new Ranked(pools, levels);
    /** @type {Map<number, Poll>} */
    this.polls = new Map();
    this.pollSerial = 0;
    for (let pool = 0; pool < pools; pool += 1) {
      this.members.add(pool);
      this.pools.push(new Pool(levels[pool], spec.threshold, true));
    }
  }

  /**
   * Simulate up to a time, for at most `budget` events. Return the number of events.
   * @param {number} until
   * @param {number} budget
   */
  advance(until, budget) {
    const { ledger, streams, flight } = this;
    let count = 0;
    for (;;) {
      const delivers = flight.nextDue <= this.nextTime;
      const time = delivers ? flight.nextDue : this.nextTime;
      if (time > until) {
        ledger.time = until;
        break;
      }
      if (count >= budget) break;
      ledger.time = time;
      if (delivers) {
        this._deliver(flight.take());
        continue;
      }
      ledger.passTime();
      ledger.events += 1;
      count += 1;
      const task = this._departing(streams.events.values[streams.position]);
      if (task < 0) this._arrive();
      else this._depart(this._removeTask(task));
      streams.next();
      this._setRate(streams.holding.values[streams.position]);
    }
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
    else this.ledger.setThreshold(value);
  }

  get threshold() {
    return this.ledger.threshold;
  }

  averages() {
    return this.ledger.averages(this._sent(), this._withoutToken());
  }

  _sent() {
    return this.sent;
  }

  _withoutToken() {
    return this.withoutToken;
  }

  /** @param {number} pool */
  token(pool) {
    if (this.spec.policy !== "threshold" || !this.alive[pool]) return 0;
    return Math.max(0, Math.min(2, this.threshold - this.estimates.level[pool] + 1));
  }

  /** @param {import("./base.js").Traffic | null} traffic */
  watch(traffic) {
    this.traffic = traffic;
  }

  // --- the dispatcher ---

  _arrive() {
    this.ledger.arrivals += 1;
    const { streams, members } = this;
    if (this.spec.policy === "power-of-d") {
      this._poll();
      return;
    }
    if (this.spec.policy === "random") {
      this._sendTask(members.items[Math.floor(streams.choice() * members.length)]);
      return;
    }
    const { estimates } = this;
    const tied = estimates.first[estimates.lowest + 1];
    const step = this.spec.policy === "threshold" ? this._learningStep() : 0;
    const pool = estimates.order[Math.floor(streams.choice() * tied)];
    estimates.up(pool);
    if (step !== 0 && this.threshold + step >= 0) this.ledger.setThreshold(this.threshold + step);
    this._sendTask(pool);
  }

  _learningStep() {
    const { estimates, threshold } = this;
    const green = estimates.count - estimates.atLeast(threshold);
    const yellow = estimates.count - estimates.atLeast(threshold + 1);
    if (yellow === 0) this.withoutToken += 1;
    return this.rule === null ? 0 : this.rule.step(estimates.count, green, yellow);
  }

  _poll() {
    const { streams, members } = this;
    const size = Math.min(this.spec.choices, members.length);
    streams.reserve(size);
    /** @type {number[]} */
    const ranks = [];
    const id = this.pollSerial;
    this.pollSerial += 1;
    /** @type {Poll} */
    const poll = { left: size, tasks: Infinity, best: 0, pools: [] };
    this.polls.set(id, poll);
    this.sent[OTHER] += 2 * size;
    for (let drawn = 0; drawn < size; drawn += 1) {
      let rank = Math.floor(streams.choice() * (members.length - drawn));
      let index = 0;
      while (index < drawn && ranks[index] <= rank) {
        rank += 1;
        index += 1;
      }
      ranks.splice(index, 0, rank);
      const pool = members.items[rank];
      poll.pools.push(pool);
      this._signal(POLL, POLL, pool, id, drawn);
    }
  }

  /**
   * @param {number} id
   * @param {number} which
   * @param {number} tasks
   */
  _polled(id, which, tasks) {
    const poll = /** @type {Poll} */ (this.polls.get(id));
    if (tasks < poll.tasks || (tasks === poll.tasks && which < poll.best)) {
      poll.tasks = tasks;
      poll.best = which;
    }
    poll.left -= 1;
    if (poll.left > 0) return;
    this.polls.delete(id);
    this._sendTask(poll.pools[poll.best]);
  }

  /** @param {import("./flight.js").Letter} letter */
  _deliver({ kind, pool, a, b, c, d }) {
    if (kind === TASK) this._begin(pool, a, b);
    else if (kind === REPORT) {
      if (c > this.heard[pool] && d === this.lives[pool]) {
        this.heard[pool] = c;
        this._estimate(pool, a + this.picks[pool] - b);
      }
    } else if (kind === DEPARTURE) {
      if (a === this.lives[pool]) this.estimates.down(pool);
    } else if (kind === POLL) this._signal(REPLY, REPLY, pool, a, b, this.alive[pool] ? this.tasksOf(pool) : 1e9);
    else this._polled(a, b, c);
  }

  // --- the pools ---

  /**
   * Let a task arrive at its pool. One that has left sends it back at once.
   * @param {number} pool
   * @param {number} threshold that the task carries
   * @param {number} version
   */
  _begin(pool, threshold, version) {
    this.arrived[pool] += 1;
    if (version > this.version[pool]) {
      this.version[pool] = version;
      this.pools[pool].threshold = threshold;
    }
    if (!this.alive[pool]) {
      this._arrive();
      return;
    }
    this.ledger.passTime();
    const left = this._left();
    this._addTask(pool);
    this.pools[pool].arrive(); // the dispatcher has counted it already
    this._setRate(left);
  }

  /** @param {number} pool */
  _depart(pool) {
    if (this.spec.policy === "threshold") this._report(pool, this.pools[pool].depart());
    else if (this.spec.policy === "jsq") {
      this.sent[OTHER] += 1;
      this._signal(DEPARTURE, OTHER, pool, this.lives[pool]);
    }
  }

  /**
   * @param {number} pool
   * @param {number} kind
   */
  _report(pool, kind) {
    if (kind === NO_COLOR) return;
    this.sent[kind] += 1;
    this.sequence[pool] += 1;
    const member = this.pools[pool];
    this._signal(REPORT, kind, pool, member.tasks, this.arrived[pool], this.sequence[pool], this.lives[pool]);
  }

  /**
   * Move the pool to its new estimate.
   * @param {number} pool
   * @param {number} tasks
   */
  _estimate(pool, tasks) {
    const { estimates } = this;
    while (estimates.level[pool] < tasks) estimates.up(pool);
    while (estimates.level[pool] > tasks) estimates.down(pool);
  }

  // --- what is on the way ---

  /** @param {number} pool */
  _sendTask(pool) {
    const due = this.time + this.delays.travel.next();
    this.picks[pool] += 1;
    this.flight.send(due, TASK, pool, this.threshold, this.picks[pool]);
    if (this.traffic !== null) this.traffic(TASK, pool, this.time, due);
  }

  /**
   * @param {number} kind
   * @param {number} shown as this kind
   * @param {number} pool
   * @param {number} [a]
   * @param {number} [b]
   * @param {number} [c]
   * @param {number} [d]
   */
  _signal(kind, shown, pool, a, b, c, d) {
    const due = this.time + this.delays.signal.next();
    this.flight.send(due, kind, pool, a, b, c, d);
    if (this.traffic !== null) this.traffic(shown, pool, this.time, due);
  }

  // --- pools that leave and come back ---

  /** @param {number} pool */
  _kill(pool) {
    const left = this._left();
    const tasks = this._removePool(pool);
    this.members.discard(pool);
    this.lives[pool] += 1;
    this.estimates.rebuild(this.estimates.members().filter((member) => member !== pool));
    for (let task = 0; task < tasks; task += 1) this._arrive();
    this._setRate(left);
  }

  /** @param {number} pool */
  _revive(pool) {
    this._addPool(pool);
    this.members.add(pool);
    this.estimates.level[pool] = this.picks[pool] - this.arrived[pool]; // still on the way
    this.estimates.rebuild([...this.estimates.members(), pool]);
    this.pools[pool] = new Pool(0, this.threshold, true);
    if (this.spec.policy === "threshold") this._report(pool, RESYNC);
  }
}

