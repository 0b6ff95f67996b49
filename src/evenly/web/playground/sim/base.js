/**
 * What all simulated systems share: the clock, the demand, and what a visitor may do to a run.
 *
 * Tasks arrive as a Poisson process and last for exponential times. One exponential gives the time of the next event,
 * one uniform says whether it is an arrival or which task departs, as in `evenly.sim.kernels`.
 */

import { Ledger } from "./ledger.js";
import { Ranked } from "./ranked.js";
import { Streams } from "./rng.js";

/**
 * @typedef {object} Spec one system
 * @property {string} policy
 * @property {number} pools
 * @property {number} load per pool
 * @property {number} threshold
 * @property {string | null} alpha
 * @property {number} choices
 * @property {number} delay mean time that tasks and messages are on the way
 * @property {boolean} exponential delays are exponential
 * @property {number} initial tasks in each pool at time 0
 * @property {number} seed
 */

/**
 * What a visitor does to a run at some time. `load`: set the load. `kill`: remove a pool; its tasks arrive again at
 * once. `revive`: bring it back, empty. `threshold`: set the threshold. `average`: take averages from now on.
 * @typedef {{type: "load" | "kill" | "revive" | "threshold" | "average", value: number}} Action
 */

/**
 * Hears of tasks and messages that travel: kind (see `core/messages.js`, or TASK, POLL, NOTICE), pool, times of
 * departure and arrival.
 * @typedef {(kind: number, pool: number, sent: number, due: number) => void} Traffic
 */

export const TASK = 5;
export const POLL = 6;
export const NOTICE = 7;
export const REPLY = 8; // the answer to a poll

export class BaseSystem {
  /**
   * @param {Spec} spec
   * @param {boolean} owned tasks are kept one by one, with the pool of each
   */
  constructor(spec, owned) {
    this.spec = spec;
    this.streams = new Streams(spec.seed);
    const tasks = new Array(spec.pools).fill(spec.initial);
    this.ranked = new Ranked(spec.pools, tasks);
    this.alive = new Uint8Array(spec.pools).fill(1);
    this.load = spec.load;
    this.ledger = new Ledger(this.ranked, spec.load, spec.policy === "threshold" ? spec.threshold : -2);
    /** @type {number[] | null} the pool of each task */
    this.owner = owned ? tasks.flatMap((count, pool) => /** @type {number[]} */ (new Array(count).fill(pool))) : null;
    this.peak = 0;
    this.rate = 0;
    this.nextTime = 0;
    /** @type {Traffic | null} */
    this.traffic = null;
    this._setRate(this.streams.holding.values[0]);
  }

  get time() {
    return this.ledger.time;
  }

  /** @param {number} pool */
  tasksOf(pool) {
    return this.ranked.level[pool];
  }

  /**
   * @param {number} uniform on [0, 1): which event it is
   * @returns {number} the task that departs, or -1 for an arrival
   */
  _departing(uniform) {
    const mark = uniform * this.rate;
    return mark >= this.peak ? Math.min(Math.floor(mark - this.peak), this.ledger.total - 1) : -1;
  }

  /**
   * Take a task out of its pool, and return the pool.
   * @param {number} task
   */
  _removeTask(task) {
    const { owner, ranked, ledger } = this;
    let pool;
    if (owner === null) {
      pool = ranked.poolOfTask(task);
    } else {
      pool = owner[task];
      const last = /** @type {number} */ (owner.pop());
      if (task < owner.length) owner[task] = last;
    }
    const level = ranked.level[pool];
    ranked.down(pool);
    ledger.remove(level);
    return pool;
  }

  /** @param {number} pool */
  _addTask(pool) {
    this.ranked.up(pool);
    this.ledger.add(this.ranked.level[pool]);
    this.owner?.push(pool);
  }

  /**
   * Set the time of the next event, when `left` of its unit exponential is still to come.
   * @param {number} left
   */
  _setRate(left) {
    this.peak = this.spec.pools * this.load;
    this.rate = this.peak + this.ledger.total;
    this.nextTime = this.ledger.time + left / this.rate;
  }

  /** What is left of the unit exponential of the next event. */
  _left() {
    return (this.nextTime - this.ledger.time) * this.rate;
  }

  /** The load per pool that is left. */
  _loadPerPool() {
    const { count } = this.ranked;
    return count === this.spec.pools ? this.load : (this.load * this.spec.pools) / count;
  }

  /** @param {number} load */
  _setLoad(load) {
    const left = this._left();
    this.load = load;
    this.ledger.rebase(this._loadPerPool(), () => {});
    this._setRate(left);
  }

  /**
   * Remove a pool, and return the number of its tasks.
   * @param {number} pool
   */
  _removePool(pool) {
    const tasks = this.ranked.level[pool];
    this.ledger.rebase((this.load * this.spec.pools) / (this.ranked.count - 1), () => {
      this.ranked.level[pool] = 0;
      this.ranked.rebuild(this.ranked.members().filter((member) => member !== pool));
      if (this.owner !== null) this.owner = this.owner.filter((each) => each !== pool);
    });
    this.alive[pool] = 0;
    return tasks;
  }

  /** @param {number} pool */
  _addPool(pool) {
    this.alive[pool] = 1;
    this.ledger.rebase((this.load * this.spec.pools) / (this.ranked.count + 1), () => {
      this.ranked.level[pool] = 0;
      this.ranked.rebuild([...this.ranked.members(), pool]);
    });
  }

  /**
   * Return true if a visitor's action makes sense now: the last pool stays, and only a policy with one has a threshold.
   * @param {Action} action
   */
  accepts(action) {
    const { type, value } = action;
    if (type === "kill") return this.alive[value] === 1 && this.ranked.count > 1;
    if (type === "revive") return this.alive[value] === 0 && value < this.spec.pools;
    if (type === "threshold") return this.spec.policy === "threshold" && value !== this.ledger.threshold;
    return type === "average" ? this.time > 0 : value !== this.load;
  }
}
