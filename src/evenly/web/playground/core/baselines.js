/**
 * The policies to compare with, behind the same events as the paper's: `evenly.core.baselines` and
 * `token_baselines` in JavaScript, bound to them by the same histories.
 */

import { GREEN, MessageCount, OTHER, RESYNC } from "./messages.js";
import { PoolSet } from "./poolset.js";

/** Members and their task counts; a subclass defines `pick` and the hooks after it. */
export class CountingPolicy {
  /** @param {number} size */
  constructor(size) {
    this.pools = new PoolSet(size);
    this.counts = new Int32Array(size);
    this.messages = new MessageCount();
  }

  /** @param {number} pool */
  tasks(pool) {
    return this.counts[pool];
  }

  /**
   * @param {number} pool
   * @param {number} tasks
   */
  join(pool, tasks) {
    this.pools.add(pool);
    this.counts[pool] = tasks;
    this.joined(pool, tasks);
  }

  /** @param {number} pool */
  leave(pool) {
    this.pools.discard(pool);
    this.left(pool, this.counts[pool]);
    this.counts[pool] = 0;
  }

  /** @param {import("./messages.js").Choose} choose */
  arrive(choose) {
    const pool = this.pick(choose);
    this.counts[pool] += 1;
    this.arrived(pool, this.counts[pool]);
    return pool;
  }

  /** @param {number} pool */
  depart(pool) {
    this.counts[pool] -= 1;
    this.departed(pool, this.counts[pool]);
  }

  /**
   * @param {import("./messages.js").Choose} _choose
   * @returns {number}
   */
  pick(_choose) {
    throw new Error("a subclass picks");
  }

  /**
   * @param {number} _pool
   * @param {number} _tasks
   */
  joined(_pool, _tasks) {}

  /**
   * @param {number} _pool
   * @param {number} _tasks
   */
  left(_pool, _tasks) {}

  /**
   * @param {number} _pool
   * @param {number} _tasks
   */
  arrived(_pool, _tasks) {}

  /**
   * @param {number} _pool
   * @param {number} _tasks
   */
  departed(_pool, _tasks) {}
}

/** Each task goes to any pool. */
export class RandomRouting extends CountingPolicy {
  /**
   * @param {import("./messages.js").Choose} choose
   * @override
   */
  pick(choose) {
    return choose(this.pools, this.pools.length);
  }
}

/** Tasks go to the pools in turn, in the order of joining. */
export class RoundRobin extends CountingPolicy {
  /** @param {number} size */
  constructor(size) {
    super(size);
    /** @type {number[]} */
    this.turns = [];
    this.next = 0;
  }

  /** @override */
  pick() {
    const pool = this.turns[this.next];
    this.next = (this.next + 1) % this.turns.length;
    return pool;
  }

  /**
   * @param {number} pool
   * @override
   */
  joined(pool) {
    this.turns.splice(this.next, 0, pool); // a new pool waits for a full round
    this.next = (this.next + 1) % this.turns.length;
  }

  /**
   * @param {number} pool
   * @override
   */
  left(pool) {
    const turn = this.turns.indexOf(pool);
    this.turns.splice(turn, 1);
    if (turn < this.next) this.next -= 1;
    if (this.next === this.turns.length) this.next = 0;
  }
}

/** Each task goes to the least loaded of d distinct random pools, on a tie the first sampled. */
export class PowerOfD extends CountingPolicy {
  /**
   * @param {number} size
   * @param {number} sampleSize
   */
  constructor(size, sampleSize) {
    super(size);
    this.sampleSize = sampleSize;
  }

  /**
   * @param {import("./messages.js").Choose} choose
   * @override
   */
  pick(choose) {
    let best = -1;
    const last = Math.max(0, this.pools.length - this.sampleSize);
    for (let left = this.pools.length; left > last; left -= 1) {
      const pool = choose(this.pools, left);
      this.pools.exchange(pool, left - 1);
      this.messages.count(OTHER, pool); // a query
      this.messages.count(OTHER, pool); // and the answer
      if (best < 0 || this.counts[pool] < this.counts[best]) best = pool;
    }
    return best;
  }
}

/** Each task goes to a pool with the fewest tasks, uniformly among them. Pools report every departure. */
export class JoinShortestQueue extends CountingPolicy {
  /** @param {number} size */
  constructor(size) {
    super(size);
    this.place = new Int32Array(size).fill(-1);
    /** @type {PoolSet[]} pools by their number of tasks */
    this.levels = [];
    this.lowest = 0;
  }

  /**
   * @param {import("./messages.js").Choose} choose
   * @override
   */
  pick(choose) {
    const candidates = this.levels[this.lowest];
    return choose(candidates, candidates.length);
  }

  /**
   * @param {number} pool
   * @param {number} tasks
   * @override
   */
  joined(pool, tasks) {
    this._level(tasks).add(pool);
    this._findLowest();
  }

  /**
   * @param {number} pool
   * @param {number} tasks
   * @override
   */
  left(pool, tasks) {
    this._level(tasks).discard(pool);
    this._findLowest();
  }

  /**
   * @param {number} pool
   * @param {number} tasks
   * @override
   */
  arrived(pool, tasks) {
    this._level(tasks - 1).discard(pool);
    this._level(tasks).add(pool);
    if (this.levels[this.lowest].length === 0) this.lowest = tasks;
  }

  /**
   * @param {number} pool
   * @param {number} tasks
   * @override
   */
  departed(pool, tasks) {
    this.messages.count(OTHER, pool);
    this._level(tasks + 1).discard(pool);
    this._level(tasks).add(pool);
    this.lowest = Math.min(this.lowest, tasks);
  }

  _findLowest() {
    this.lowest = Math.max(
      0,
      this.levels.findIndex((set) => set.length > 0),
    );
  }

  /** @param {number} tasks */
  _level(tasks) {
    while (this.levels.length <= tasks) this.levels.push(new PoolSet(0, this.place));
    return this.levels[tasks];
  }
}

/** Each task goes to a pool with fewer than `below` tasks, or to any pool if there is none. Below 1: an idle pool. */
export class JoinBelowThreshold extends CountingPolicy {
  /**
   * @param {number} size
   * @param {number} below
   */
  constructor(size, below) {
    super(size);
    this.below = below;
    this.tokens = new PoolSet(size);
    this.withoutToken = 0;
  }

  /**
   * @param {import("./messages.js").Choose} choose
   * @override
   */
  pick(choose) {
    if (this.tokens.length === 0) {
      this.withoutToken += 1;
      return choose(this.pools, this.pools.length);
    }
    const pool = choose(this.tokens, this.tokens.length);
    this.tokens.discard(pool);
    return pool;
  }

  /**
   * @param {number} pool
   * @param {number} tasks
   * @override
   */
  joined(pool, tasks) {
    if (tasks < this.below) this._send(RESYNC, pool);
  }

  /**
   * @param {number} pool
   * @override
   */
  left(pool) {
    this.tokens.discard(pool);
  }

  /**
   * @param {number} pool
   * @param {number} tasks
   * @override
   */
  arrived(pool, tasks) {
    if (tasks < this.below) this._send(GREEN, pool);
  }

  /**
   * @param {number} pool
   * @param {number} tasks
   * @override
   */
  departed(pool, tasks) {
    if (tasks === this.below - 1) this._send(GREEN, pool);
  }

  /**
   * @param {number} kind
   * @param {number} pool
   */
  _send(kind, pool) {
    this.messages.count(kind, pool);
    this.tokens.add(pool);
  }
}
