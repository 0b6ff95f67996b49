/**
 * The kinds of messages between pools and dispatcher, as `evenly.core.messages` counts them.
 *
 * GREEN and YELLOW are the paper's, at most two per task. RESYNC are tokens that the dispatcher lacks when the
 * threshold changes. OTHER are the messages of policies without tokens.
 */
export const GREEN = 0;
export const YELLOW = 1;
export const RESYNC = 2;
export const OTHER = 3;

/**
 * Picks one of the first `length` candidates, uniformly at random. The caller of a policy supplies it.
 * @typedef {(candidates: import("./poolset.js").PoolSet, length: number) => number} Choose
 */

/**
 * Hears of every message that is sent: its kind and the pool that sends it or, for polls, receives it.
 * @typedef {(kind: number, pool: number) => void} Listener
 */

export class MessageCount {
  constructor() {
    /** @type {number[]} by kind */
    this.sent = [0, 0, 0, 0];
    /** @type {Listener | null} */
    this.listener = null;
  }

  /**
   * @param {number} kind
   * @param {number} pool
   */
  count(kind, pool) {
    this.sent[kind] += 1;
    if (this.listener !== null) this.listener(kind, pool);
  }
}
