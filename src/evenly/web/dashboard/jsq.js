// What join-the-shortest-queue would do: a model that runs beside the real system, in this page.
//
// It has the same number of pools, and as many sessions start and end in it as in the real system. Each start goes to
// a pool with the fewest sessions. Which session ends is chosen at random, since only the real system knows how long
// a session lasts. Pools with the same number of sessions are alike, so it only counts pools by their sessions.

const WARM_UP = 4; // times the open sessions, after which the start no longer matters
const MAX_WARM_UP = 100_000; // events: a few milliseconds
const MAX_FOLLOW = 20_000; // events per message

/** The model. `random` returns numbers from 0 to 1. */
export class JsqShadow {
  /** @param {() => number} random */
  constructor(random = Math.random) {
    /** @private */ this.random = random;
    this.pools = 0;
    this.sessions = 0;
    /** @private @type {Map<number, number>} pools by their sessions; no entry is 0 */
    this.counts = new Map();
    /** @private */ this.low = 0;
    /** @private */ this.high = 0;
  }

  /**
   * Start again with this many pools and sessions, as JSQ would have them after `ended` others have ended: as even as
   * possible if none has, and after many as in a long run at this load.
   *
   * @param {number} pools
   * @param {number} sessions
   * @param {number} ended
   */
  reset(pools, sessions, ended) {
    this.pools = pools;
    this.sessions = sessions;
    this.counts = new Map();
    if (pools === 0) return;
    this.low = Math.floor(sessions / pools);
    const above = sessions - this.low * pools;
    this.counts.set(this.low, pools - above);
    if (above > 0) this.counts.set(this.low + 1, above);
    this.high = above > 0 ? this.low + 1 : this.low;
    for (let left = Math.min(2 * ended, WARM_UP * sessions, MAX_WARM_UP); left > 0; left -= 1) {
      if (this.random() * (sessions + this.sessions) < sessions) this.start();
      else this.end();
    }
    while (this.sessions < sessions) this.start();
    while (this.sessions > sessions) this.end();
  }

  /**
   * Let sessions start and end, in random order. Beyond a limit, starts and ends that cancel out are skipped: the
   * spread then depends on the number of open sessions alone.
   *
   * @param {number} starts
   * @param {number} ends
   */
  follow(starts, ends) {
    if (this.pools === 0) return;
    const both = Math.max(Math.min(starts, ends) - MAX_FOLLOW / 2, 0);
    let arrivals = starts - both;
    let departures = Math.min(ends - both, this.sessions + arrivals);
    while (arrivals + departures > 0) {
      const begins = this.sessions === 0 || this.random() * (arrivals + departures) < arrivals;
      if (begins && arrivals > 0) {
        arrivals -= 1;
        this.start();
      } else if (departures > 0) {
        departures -= 1;
        this.end();
      }
    }
  }

  /** Return the standard deviation of the sessions over the pools. */
  spread() {
    if (this.pools === 0) return 0;
    const mean = this.sessions / this.pools;
    let squares = 0;
    for (const [level, count] of this.counts) squares += count * (level - mean) ** 2;
    return Math.sqrt(squares / this.pools);
  }

  /** @private */
  start() {
    const level = this.low;
    this.move(level, level + 1);
    this.sessions += 1;
    if (!this.counts.has(level)) this.low = level + 1;
    this.high = Math.max(this.high, level + 1);
  }

  /** @private */
  end() {
    let drawn = Math.floor(this.random() * this.sessions);
    let level = this.high;
    for (; level > this.low; level -= 1) {
      const here = level * (this.counts.get(level) ?? 0);
      if (drawn < here) break;
      drawn -= here;
    }
    if (level === 0) return; // no session is open
    this.move(level, level - 1);
    this.sessions -= 1;
    this.low = Math.min(this.low, level - 1);
    while (!this.counts.has(this.high)) this.high -= 1;
  }

  /**
   * @private
   * @param {number} from
   * @param {number} to
   */
  move(from, to) {
    const left = (this.counts.get(from) ?? 0) - 1;
    if (left > 0) this.counts.set(from, left);
    else this.counts.delete(from);
    this.counts.set(to, (this.counts.get(to) ?? 0) + 1);
  }
}
