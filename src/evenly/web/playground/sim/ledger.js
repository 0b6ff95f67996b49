/**
 * The records of a run: time integrals and counts, kept as `evenly.sim.kernels` keeps them, and the averages.
 *
 * The sums are the same in the same order, so that the averages are those of `evenly simulate` but for rounding.
 */

/**
 * Averages over time, under the names of `evenly simulate --json`.
 * @typedef {object} Averages
 * @property {number} time
 * @property {number} events
 * @property {number} mean_tasks
 * @property {number[]} pools_with_exactly
 * @property {{mean: number, distribution: number[]}} max_tasks
 * @property {{mean: number}} spread
 * @property {{mean: number}} imbalance
 * @property {{final: number, mean: number, changes: number, settled_at: number, time_at: Record<string, number>} | null} threshold
 * @property {{green: number, yellow: number, resync: number, other: number, tasks: number,
 *   per_task: number}} messages
 * @property {number} without_token
 */

export class Ledger {
  /**
   * @param {import("./ranked.js").Ranked} ranked the pools by their tasks
   * @param {number} load per pool
   * @param {number} threshold negative for policies without one
   */
  constructor(ranked, load, threshold) {
    this.ranked = ranked;
    this.time = 0;
    this.events = 0;
    this.arrivals = 0;
    this.threshold = threshold;
    this.changes = 0;
    this.lastChange = 0;
    this.total = 0;
    this.squares = 0;
    this.maxLevel = 0;
    this.load = load;
    this.gap = 0;
    this.gapArea = 0;
    this.spreadArea = 0;
    this.since = 0;
    this.maxSince = 0;
    this.thresholdSince = 0;
    /** @type {number[]} */
    this.area = [];
    /** @type {number[]} */
    this.maxTime = [];
    /** @type {number[]} */
    this.thresholdTime = [];
    this.pools = ranked.count;
    this.poolTime = -1; // pools times time, once the number of pools has changed
    this.poolsSince = 0;
    /** @type {Tally | null} where averages begin */
    this.first = null;
    this.recount(load);
  }

  /**
   * Count all pools anew, when pools join or leave or the load changes; nothing has happened since the last event.
   * @param {number} load per pool
   */
  recount(load) {
    const { ranked } = this;
    this.pools = ranked.count;
    this.load = load;
    this.total = 0;
    this.squares = 0;
    this.maxLevel = ranked.highest;
    for (let level = 1; level <= this.maxLevel; level += 1) {
      this.total += ranked.atLeast(level);
      this.squares += (2 * level - 1) * ranked.atLeast(level);
    }
    this.gap = 0;
    const whole = Math.floor(load);
    for (let level = 0; level <= Math.max(this.maxLevel, whole); level += 1) {
      this.gap += (ranked.atLeast(level) - (level <= whole ? this.pools : 0)) ** 2;
    }
  }

  /** Integrate distance and spread up to now. */
  passTime() {
    const step = this.time - this.since;
    this.gapArea += this._distance() * step;
    this.spreadArea += this._spread() * step;
    this.since = this.time;
  }

  /**
   * Begin another load per pool, or another number of pools; `change` makes it so.
   * @param {number} load
   * @param {() => void} change
   */
  rebase(load, change) {
    this.passTime();
    this._set(this.maxTime, this.maxLevel, this.time - this.maxSince);
    this.maxSince = this.time;
    if (this.threshold >= 0) {
      this._set(this.thresholdTime, this.threshold, this.time - this.thresholdSince);
      this.thresholdSince = this.time;
    }
    const before = this._counts();
    const { pools } = this;
    change();
    const after = this._counts();
    for (let level = 0; level < Math.max(before.length, after.length); level += 1) {
      const step = (after[level] ?? 0) - (before[level] ?? 0);
      if (step !== 0) this._set(this.area, level, -step * this.time);
    }
    if (this.ranked.count !== pools) {
      this.poolTime = this._poolTime();
      this.poolsSince = this.time;
    }
    this.recount(load);
  }

  /**
   * Record that a pool gets a task and has `level` now; the ranking knows already.
   * @param {number} level
   */
  add(level) {
    const count = this.ranked.atLeast(level) - 1;
    this.gap += 1 + 2 * (count - this._full(level));
    this._set(this.area, level, -this.time);
    this.total += 1;
    this.squares += 2 * level - 1;
    if (level > this.maxLevel) this._setMax(level);
  }

  /**
   * Record that a pool with `level` tasks lost one; the ranking knows already.
   * @param {number} level
   */
  remove(level) {
    const count = this.ranked.atLeast(level) + 1;
    this.gap += 1 - 2 * (count - this._full(level));
    this._set(this.area, level, this.time);
    this.total -= 1;
    this.squares -= 2 * level - 1;
    if (level === this.maxLevel && count === 1) this._setMax(level - 1);
  }

  /** @param {number} threshold */
  setThreshold(threshold) {
    this._set(this.thresholdTime, this.threshold, this.time - this.thresholdSince);
    this.thresholdSince = this.time;
    this.lastChange = this.time;
    this.threshold = threshold;
    this.changes += 1;
  }

  /** The distance to balance right now, as in the paper's Sec. 5.3. */
  get imbalance() {
    return this._distance() / this.pools;
  }

  get spread() {
    return this._spread();
  }

  /**
   * Return the integrals and counts up to now.
   * @param {number[]} sent messages by kind
   * @param {number} withoutToken
   */
  tally(sent, withoutToken) {
    const { time } = this;
    const step = time - this.since;
    const counts = this._counts();
    const levels = Math.max(counts.length, this.area.length);
    return {
      time,
      scale: this.poolTime < 0 ? time * this.pools : this._poolTime(),
      atLeast: Array.from({ length: levels }, (_, level) => (this.area[level] ?? 0) + (counts[level] ?? 0) * time),
      maxTime: this._copied(this.maxTime, this.maxLevel, time - this.maxSince),
      thresholdTime:
        this.threshold < 0 ? [] : this._copied(this.thresholdTime, this.threshold, time - this.thresholdSince),
      gap: this.gapArea + this._distance() * step,
      spread: this.spreadArea + this._spread() * step,
      sent: [...sent],
      arrivals: this.arrivals,
      withoutToken,
      changes: this.changes,
    };
  }

  /**
   * Take averages from now on, not from time 0.
   * @param {number[]} sent
   * @param {number} withoutToken
   */
  startAverages(sent, withoutToken) {
    this.first = this.tally(sent, withoutToken);
  }

  /**
   * Return the averages up to now, from time 0 or from `startAverages` on.
   * @param {number[]} sent messages by kind
   * @param {number} withoutToken
   * @returns {Averages}
   */
  averages(sent, withoutToken) {
    const window = this.first === null ? this.tally(sent, withoutToken) : since(this.first, this.tally(sent, withoutToken));
    const time = window.time;
    const scale = this.first === null || this.poolTime >= 0 ? window.scale : time * this.pools;
    const atLeast = window.atLeast.map((area) => area / scale);
    const exactly = atLeast.map((share, level) => {
      const difference = share - (atLeast[level + 1] ?? 0);
      return difference > 1e-15 ? difference : 0;
    });
    const maxima = trimmed(window.maxTime.map((length) => length / time));
    const [green, yellow, resync, other] = window.sent;
    return {
      time,
      events: this.events,
      mean_tasks: pairwiseSum(trimmed(atLeast).slice(1)),
      pools_with_exactly: trimmed(exactly),
      max_tasks: { mean: maxima.reduce((sum, share, level) => sum + share * level, 0), distribution: maxima },
      spread: { mean: window.spread / time },
      imbalance: { mean: window.gap / scale },
      threshold: this.threshold < 0 ? null : this._thresholdAverages(window),
      messages: {
        green,
        yellow,
        resync,
        other,
        tasks: window.arrivals,
        per_task: window.arrivals > 0 ? (green + yellow + other) / window.arrivals : 0,
      },
      without_token: window.withoutToken,
    };
  }

  /** @param {Tally} window */
  _thresholdAverages(window) {
    /** @type {Record<string, number>} */
    const shares = {};
    let mean = 0;
    window.thresholdTime.forEach((length, level) => {
      const share = length / window.time;
      if (share <= 0) return;
      shares[level] = share;
      mean += level * share;
    });
    return { final: this.threshold, mean, changes: window.changes, settled_at: this.lastChange, time_at: shares };
  }

  /** Pools with at least i tasks, up to the fullest. */
  _counts() {
    return Array.from({ length: this.ranked.highest + 1 }, (_, level) => this.ranked.atLeast(level));
  }

  _poolTime() {
    return Math.max(this.poolTime, 0) + this.pools * (this.time - this.poolsSince);
  }

  /** Euclidean distance to balance, times pools. */
  _distance() {
    const whole = Math.floor(this.load);
    const part = this.pools * (this.load - whole);
    return Math.sqrt(Math.max(this.gap + part * (part - 2 * this.ranked.atLeast(whole + 1)), 0));
  }

  /** Standard deviation of tasks over pools. */
  _spread() {
    return Math.sqrt(Math.max(this.pools * this.squares - this.total * this.total, 0)) * (1 / this.pools);
  }

  /** @param {number} level */
  _full(level) {
    return level <= Math.floor(this.load) ? this.pools : 0;
  }

  /** @param {number} level */
  _setMax(level) {
    this._set(this.maxTime, this.maxLevel, this.time - this.maxSince);
    this.maxSince = this.time;
    this.maxLevel = level;
  }

  /**
   * Add to an entry of an array that grows.
   * @param {number[]} array
   * @param {number} index
   * @param {number} change
   */
  _set(array, index, change) {
    while (array.length <= index) array.push(0);
    array[index] += change;
  }

  /**
   * @param {number[]} array
   * @param {number} index
   * @param {number} change
   */
  _copied(array, index, change) {
    const copy = [...array];
    this._set(copy, index, change);
    return copy;
  }
}

/** @typedef {ReturnType<Ledger["tally"]>} Tally */

/**
 * Return what is new in a later tally.
 * @param {Tally} first
 * @param {Tally} last
 * @returns {Tally}
 */
function since(first, last) {
  const difference = (/** @type {number[]} */ later, /** @type {number[]} */ earlier) =>
    Array.from({ length: Math.max(later.length, earlier.length) }, (_, at) => (later[at] ?? 0) - (earlier[at] ?? 0));
  return {
    time: last.time - first.time,
    scale: last.scale - first.scale,
    atLeast: difference(last.atLeast, first.atLeast),
    maxTime: difference(last.maxTime, first.maxTime),
    thresholdTime: difference(last.thresholdTime, first.thresholdTime),
    gap: last.gap - first.gap,
    spread: last.spread - first.spread,
    sent: difference(last.sent, first.sent),
    arrivals: last.arrivals - first.arrivals,
    withoutToken: last.withoutToken - first.withoutToken,
    changes: last.changes - first.changes,
  };
}

/**
 * Drop trailing zeros, but keep one entry.
 * @param {number[]} values
 */
function trimmed(values) {
  let length = values.length;
  while (length > 1 && values[length - 1] === 0) length -= 1;
  return values.slice(0, length);
}

/**
 * Sum as NumPy does: eight running sums, then what is left over; long arrays in halves.
 * @param {number[]} values
 * @returns {number}
 */
function pairwiseSum(values) {
  const length = values.length;
  if (length < 8) return values.reduce((sum, value) => sum + value, 0);
  if (length > 128) {
    const middle = Math.floor(length / 2);
    const half = middle - (middle % 8);
    return pairwiseSum(values.slice(0, half)) + pairwiseSum(values.slice(half));
  }
  const sums = [0, 0, 0, 0, 0, 0, 0, 0];
  const whole = length - (length % 8);
  for (let index = 0; index < whole; index += 1) sums[index % 8] += values[index];
  const total = sums[0] + sums[1] + (sums[2] + sums[3]) + (sums[4] + sums[5] + (sums[6] + sums[7]));
  return values.slice(whole).reduce((sum, value) => sum + value, total);
}
