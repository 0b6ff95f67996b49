/**
 * An ordered set of pools with constant-time add, discard and positional access: `evenly.core.poolset` in JavaScript.
 *
 * The order is part of the contract: `add` appends, `discard` moves the last item into the gap.
 */

export class PoolSet {
  /**
   * @param {number} size pools are numbered from 0 to size - 1
   * @param {Int32Array} [place] where each pool is; sets that never share a pool can share it
   */
  constructor(size, place) {
    /** @type {number[]} */
    this.items = [];
    this.place = place ?? new Int32Array(size).fill(-1);
  }

  get length() {
    return this.items.length;
  }

  /** @param {number} pool */
  has(pool) {
    return this.place[pool] >= 0;
  }

  /** @param {number} pool */
  add(pool) {
    if (this.place[pool] < 0) {
      this.place[pool] = this.items.length;
      this.items.push(pool);
    }
  }

  /** @param {number} pool */
  discard(pool) {
    const hole = this.place[pool];
    if (hole < 0) return;
    this.place[pool] = -1;
    const last = /** @type {number} */ (this.items.pop());
    if (hole < this.items.length) {
      this.items[hole] = last;
      this.place[last] = hole;
    }
  }

  /**
   * Swap the pool with the one at `position`.
   * @param {number} pool
   * @param {number} position
   */
  exchange(pool, position) {
    const old = this.place[pool];
    const other = this.items[position];
    this.items[old] = other;
    this.items[position] = pool;
    this.place[other] = old;
    this.place[pool] = position;
  }

  clear() {
    for (const pool of this.items) this.place[pool] = -1;
    this.items.length = 0;
  }
}
