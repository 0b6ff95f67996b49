/**
 * Pools ordered by a number, their tasks or an estimate, with constant-time steps up and down.
 *
 * A pool that moves swaps places at the border of its level, as in `evenly.sim.kernels.parties`.
 */

export class Ranked {
  /**
   * @param {number} size pools are numbered from 0 to size - 1
   * @param {ArrayLike<number>} levels of each pool
   */
  constructor(size, levels) {
    this.level = Int32Array.from(levels);
    this.order = new Int32Array(size);
    this.place = new Int32Array(size).fill(-1);
    /** @type {Int32Array} first[i]: place of the first pool at level i or above */
    this.first = new Int32Array(64);
    this.count = 0;
    this.rebuild(Array.from({ length: size }, (_, pool) => pool));
  }

  /**
   * Order these members anew.
   * @param {number[]} members
   */
  rebuild(members) {
    const sorted = [...members].sort((a, b) => this.level[a] - this.level[b]); // stable
    this.count = sorted.length;
    this.place.fill(-1);
    sorted.forEach((pool, place) => {
      this.order[place] = pool;
      this.place[pool] = place;
    });
    const top = this.count > 0 ? this.level[sorted[this.count - 1]] : 0;
    this._room(top + 2);
    let place = 0;
    for (let level = 0; level < this.first.length; level += 1) {
      while (place < this.count && this.level[sorted[place]] < level) place += 1;
      this.first[level] = place;
    }
  }

  members() {
    return Array.from(this.order.subarray(0, this.count));
  }

  /** @param {number} level */
  atLeast(level) {
    return level < this.first.length ? this.count - this.first[level] : 0;
  }

  get highest() {
    return this.count > 0 ? this.level[this.order[this.count - 1]] : 0;
  }

  get lowest() {
    return this.count > 0 ? this.level[this.order[0]] : 0;
  }

  /** @param {number} pool */
  up(pool) {
    const { order, place } = this;
    const level = this.level[pool];
    this._room(level + 3);
    const last = this.first[level + 1] - 1;
    const gap = place[pool];
    const other = order[last];
    order[gap] = other;
    place[other] = gap;
    order[last] = pool;
    place[pool] = last;
    this.first[level + 1] = last;
    this.level[pool] = level + 1;
  }

  /** @param {number} pool */
  down(pool) {
    const { order, place } = this;
    const level = this.level[pool];
    const start = this.first[level];
    const gap = place[pool];
    const other = order[start];
    order[gap] = other;
    place[other] = gap;
    order[start] = pool;
    place[pool] = start;
    this.first[level] = start + 1;
    this.level[pool] = level - 1;
  }

  /**
   * Return the pool of a task, when tasks are counted from the fullest pools down.
   * @param {number} task
   */
  poolOfTask(task) {
    let level = this.highest;
    let left = task;
    for (;;) {
      const here = level * (this.first[level + 1] - this.first[level]);
      if (left < here) return this.order[this.first[level] + Math.floor(left / level)];
      left -= here;
      level -= 1;
    }
  }

  /** @param {number} levels */
  _room(levels) {
    if (levels < this.first.length) return;
    const grown = new Int32Array(Math.max(2 * this.first.length, levels + 1)).fill(this.count);
    grown.set(this.first);
    this.first = grown;
  }
}
