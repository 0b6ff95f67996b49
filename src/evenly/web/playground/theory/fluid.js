/**
 * The fluid limit over time, for pictures: in small steps, departures first, then arrivals.
 *
 * `evenly.theory.fluid` solves the same equations to many digits, mode by mode. Here a step places what arrives in it:
 * up to the threshold, then one level higher, then at random. That is Thm 1 (a), (b) and (c) without a case in between,
 * and it cannot chatter where the solution slides. Tests compare the two.
 */

const STEP = 1 / 256; // of a mean task time

export class Fluid {
  /**
   * @param {import("../sim/base.js").Spec} spec
   */
  constructor(spec) {
    this.spec = spec;
    this.time = 0;
    this.threshold = spec.threshold;
    this.alpha = spec.alpha === null ? null : Number(spec.alpha);
    this.load = spec.load;
    this.q = Float64Array.from({ length: 24 }, (_, level) => (level <= spec.initial ? 1 : 0));
    this._makeRoom(spec.initial);
    this._learn();
  }

  /** Whether the fluid limit of a policy is known. @param {{policy: string, delay: number}} spec */
  static knows(spec) {
    return spec.delay === 0 && ["threshold", "jsq", "random", "power-of-d"].includes(spec.policy);
  }

  /** @param {number} until */
  advance(until) {
    while (this.time + STEP <= until + STEP / 2) {
      this.time += STEP;
      this._depart();
      if (this.spec.policy === "threshold") this._fill(this.threshold);
      else if (this.spec.policy === "jsq") this._fill(this._lowest());
      else this._sample(this.spec.policy === "random" ? 1 : this.spec.choices);
      this._learn();
      this._makeRoom(this.threshold);
    }
  }

  _depart() {
    const { q } = this;
    for (let level = 1; level + 1 < q.length; level += 1) q[level] -= STEP * level * (q[level] - q[level + 1]);
  }

  /**
   * Send the arrivals of a step to pools below the threshold, then to those at it, then anywhere. Paper: Thm 1.
   * @param {number} threshold
   */
  _fill(threshold) {
    const { q } = this;
    let amount = STEP * this.load;
    for (let part = 0; part < 64 && amount > 0; part += 1) {
      const gap = 1 - q[threshold];
      if (gap <= 0) break;
      // A part small enough that the pools below the threshold hardly change.
      const now = Math.min(amount, gap / 4 + 1e-12);
      let placed = 0;
      for (let level = threshold; level > 0; level -= 1) {
        const share = Math.min((now * (q[level - 1] - q[level])) / gap, 1 - q[level]);
        q[level] += share;
        placed += share;
      }
      amount -= placed;
    }
    const room = Math.min(amount, 1 - q[threshold + 1]);
    if (room > 0) q[threshold + 1] += room;
    amount -= Math.max(room, 0);
    if (amount <= 0) return;
    for (let level = q.length - 2; level > threshold + 1; level -= 1) q[level] += amount * (q[level - 1] - q[level]);
  }

  /** @param {number} choices */
  _sample(choices) {
    const { q, load } = this;
    for (let level = q.length - 2; level > 0; level -= 1) {
      q[level] += STEP * load * (q[level - 1] ** choices - q[level] ** choices);
    }
  }

  /** The level that all pools have reached. */
  _lowest() {
    let level = 0;
    while (this.q[level + 1] >= 1 - this.load * STEP * 2) level += 1;
    return level;
  }

  /** Move the threshold. Paper: Def. 2. */
  _learn() {
    if (this.alpha === null || this.spec.policy !== "threshold") return;
    const { q, alpha } = this;
    while (this.threshold > 0 && q[this.threshold] <= alpha) this.threshold -= 1;
    while (q[this.threshold + 1] >= 1 - 1e-9) {
      this.threshold += 1;
      this._makeRoom(this.threshold);
    }
  }

  /** @param {number} level */
  _makeRoom(level) {
    if (level + 4 < this.q.length && this.q[this.q.length - 3] < 1e-9) return;
    const grown = new Float64Array(2 * Math.max(this.q.length, level + 4));
    grown.set(this.q);
    this.q = grown;
  }
}
