/**
 * A system where tasks and messages take time: the protocol of `evenly.core.protocol`, as `evenly.sim.kernels.delayed`
 * simulates it, decision for decision.
 *
 * A message says how many tasks the pool has and how many arrivals it has seen. The dispatcher's estimate is that count
 * plus its own picks not yet seen. Every pool answers a threshold change, and the rule rests until all have.
 */

import { Dispatcher, LearningRule, NO_COLOR, Pool } from "../core/dispatcher.js";
import { ACK, OTHER, RESYNC } from "../core/messages.js";
import { PoolSet } from "../core/poolset.js";
import { BaseSystem, NOTICE, POLL, REPLY, TASK } from "./base.js";
import { Flight } from "./flight.js";
import { Ranked } from "./ranked.js";
import { newDelays } from "./rng.js";

const REPORT = 9; // from a pool to the dispatcher: tasks, arrivals, sequence number, epoch
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
    this.sent = [0, 0, 0, 0, 0];
    this.members = new PoolSet(pools);
    this.arrived = new Int32Array(pools);
    this.sequence = new Int32Array(pools);
    this.picks = new Int32Array(pools);
    this.heard = new Int32Array(pools);
    this.lives = new Int32Array(pools); // how often each pool has left
    const rule = spec.alpha === null ? null : new LearningRule(spec.alpha);
    this.dispatcher = new Dispatcher(pools, spec.threshold, spec.policy === "threshold" ? rule : null);
    /** @type {Pool[]} */
    this.pools = [];
    this.estimates = new Ranked(pools, levels);
    /** @type {Map<number, Poll>} */
    this.polls = new Map();
    this.pollSerial = 0;
    for (let pool = 0; pool < pools; pool += 1) {
      this.members.add(pool);
      this.pools.push(new Pool(levels[pool], spec.threshold, 0, true));
      this.dispatcher.join(pool);
      this.dispatcher.receive(pool, levels[pool], 0, 0);
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
    else {
      this.dispatcher.restart(value);
      this._tellPools();
    }
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
    return this.dispatcher.withoutToken;
  }

  /** @param {number} pool */
  token(pool) {
    if (this.spec.policy !== "threshold") return 0;
    return this.dispatcher.green.has(pool) ? 2 : this.dispatcher.yellow.has(pool) ? 1 : 0;
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
    let pool;
    if (this.spec.policy === "threshold") {
      pool = this.dispatcher.dispatch((candidates, length) => candidates.items[Math.floor(streams.choice() * length)]);
      if (this.dispatcher.learn()) this._tellPools();
    } else if (this.spec.policy === "jsq") {
      const { estimates } = this;
      const lowest = estimates.first[estimates.lowest + 1];
      pool = estimates.order[Math.floor(streams.choice() * lowest)];
      estimates.up(pool);
    } else {
      pool = members.items[Math.floor(streams.choice() * members.length)];
    }
    this._sendTask(pool);
  }

  _tellPools() {
    const { threshold, epoch, pools } = this.dispatcher;
    this.ledger.setThreshold(threshold);
    for (const pool of pools.items) this._signal(NOTICE, NOTICE, pool, threshold, epoch);
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
    if (kind === TASK) this._begin(pool);
    else if (kind === REPORT) {
      if (c <= this.heard[pool]) return;
      this.heard[pool] = c;
      this.dispatcher.receive(pool, a, d, this.picks[pool] - b);
    } else if (kind === NOTICE) this._adopt(pool, a, b);
    else if (kind === DEPARTURE) {
      if (a === this.lives[pool]) this.estimates.down(pool);
    } else if (kind === POLL) this._signal(REPLY, REPLY, pool, a, b, this.alive[pool] ? this.tasksOf(pool) : 1e9);
    else this._polled(a, b, c);
  }

  // --- the pools ---

  /**
   * Let a task arrive at its pool. One that has left sends it back at once.
   * @param {number} pool
   */
  _begin(pool) {
    this.arrived[pool] += 1;
    if (!this.alive[pool]) {
      this._arrive();
      return;
    }
    this.ledger.passTime();
    const left = this._left();
    this._addTask(pool);
    if (this.spec.policy === "threshold") this._report(pool, this.pools[pool].arrive());
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
   * @param {number} threshold
   * @param {number} epoch
   */
  _adopt(pool, threshold, epoch) {
    const member = this.pools[pool];
    if (!this.alive[pool] || epoch <= member.epoch) return;
    this._report(pool, member.rethreshold(threshold, epoch) ? RESYNC : ACK);
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
    this._signal(REPORT, kind, pool, member.tasks, this.arrived[pool], this.sequence[pool], member.epoch);
  }

  // --- what is on the way ---

  /** @param {number} pool */
  _sendTask(pool) {
    const due = this.time + this.delays.travel.next();
    this.picks[pool] += 1;
    this.flight.send(due, TASK, pool);
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
    this.dispatcher.leave(pool);
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
    const { threshold, epoch } = this.dispatcher;
    this.pools[pool] = new Pool(0, threshold, epoch, true);
    this.dispatcher.join(pool);
    this._report(pool, RESYNC);
  }
}

