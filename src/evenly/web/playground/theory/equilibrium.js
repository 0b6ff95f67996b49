/**
 * Where policies settle in the large-system limit, and how soon: the formulas of `evenly.theory`.
 *
 * An occupancy is the share of pools with at least i tasks, from level 0 on.
 */

const NEGLIGIBLE = 1e-14;

/**
 * The balanced occupancy q*. Paper: eq. (1).
 * @param {number} load
 */
export function balanced(load) {
  return Array.from({ length: Math.ceil(load) + 1 }, (_, level) => Math.min(Math.max(load - level + 1, 0), 1));
}

/**
 * Shares of pools with exactly i tasks.
 * @param {number[]} occupancy
 */
export function exactly(occupancy) {
  return occupancy.map((share, level) => share - (occupancy[level + 1] ?? 0));
}

/**
 * Standard deviation of tasks over the pools.
 * @param {number[]} occupancy
 */
export function spreadOf(occupancy) {
  const mean = occupancy.slice(1).reduce((sum, share) => sum + share, 0);
  return Math.sqrt(exactly(occupancy).reduce((sum, share, level) => sum + share * (level - mean) ** 2, 0));
}

/**
 * The occupancy of a Poisson law of this rate, conditioned on the levels from `low` to `high`.
 * @param {number} rate
 * @param {number} low
 * @param {number} high
 */
function poissonTail(rate, low, high) {
  /** @type {number[]} */
  const weights = [];
  const mode = Math.min(Math.max(Math.floor(rate), low), high);
  for (let level = mode, weight = 1; level >= low && weight > NEGLIGIBLE; level -= 1) {
    weights[level] = weight;
    weight *= level / rate;
  }
  for (let level = mode, weight = 1; level <= high && weight > NEGLIGIBLE; level += 1) {
    weights[level] = weight;
    weight *= rate / (level + 1);
  }
  /** @type {number[]} */
  const tails = new Array(weights.length).fill(0);
  let sum = 0;
  for (let level = weights.length - 1; level >= 0; level -= 1) {
    sum += weights[level] ?? 0;
    tails[level] = sum;
  }
  return tails.map((tail) => tail / sum);
}

/**
 * The occupancy of a conditioned Poisson law whose mean is the load. The mean grows with the rate.
 * @param {number} load
 * @param {number} low
 * @param {number} high
 * @param {number} least rate
 * @param {number} most rate
 */
function poissonWithMean(load, low, high, least, most) {
  let occupancy = balanced(load);
  for (let step = 0; step < 100; step += 1) {
    const rate = (least + most) / 2;
    occupancy = poissonTail(rate, low, high);
    const mean = occupancy.slice(1).reduce((sum, share) => sum + share, 0);
    if (mean < load) least = rate;
    else most = rate;
  }
  return occupancy;
}

/**
 * Where a fixed threshold settles. Paper: Thm 2, Exs 1 and 2.
 * @param {number} load
 * @param {number} threshold
 */
export function thresholdEquilibrium(load, threshold) {
  const kind = thresholdKind(load, threshold);
  if (kind === "balanced") return balanced(load);
  if (kind === "large") {
    return poissonWithMean(load, 0, threshold, load, threshold + threshold / (threshold - load));
  }
  const high = threshold + 1;
  const gap = load - high;
  return poissonWithMean(load, high, Infinity, ((high + 1) * gap) / (1 + gap), load);
}

/**
 * Classify a threshold for a load. Paper: Cor. 1.
 * @param {number} load
 * @param {number} threshold
 * @returns {"balanced" | "large" | "small"}
 */
export function thresholdKind(load, threshold) {
  const best = Math.floor(load);
  if (threshold === best || (load < 1 && threshold === 1) || (load === best && threshold === best - 1)) {
    return "balanced";
  }
  return threshold > best ? "large" : "small";
}

/**
 * Where power-of-d settles, by Newton's method from the balanced occupancy.
 * @param {number} load
 * @param {number} choices
 */
export function powerOfDEquilibrium(load, choices) {
  const levels = poissonTail(load, 0, Infinity).length;
  let q = Array.from({ length: levels }, (_, index) => Math.min(Math.max(load - index, 0), 1)); // levels 1 and up
  for (let step = 0; step < 60; step += 1) {
    const drift = q.map((share, index) => {
      const below = index === 0 ? 1 : q[index - 1];
      return load * (below ** choices - share ** choices) - (index + 1) * (share - (q[index + 1] ?? 0));
    });
    const slopes = q.map((share) => load * choices * share ** (choices - 1));
    const change = solveTridiagonal(
      slopes.map((_, index) => (index === 0 ? 0 : slopes[index - 1])),
      slopes.map((slope, index) => -slope - (index + 1)),
      slopes.map((_, index) => index + 1),
      drift,
    );
    q = q.map((share, index) => Math.min(Math.max(share - change[index], 0), 1));
    if (Math.max(...drift.map(Math.abs)) < 1e-13) break;
  }
  return [1, ...q];
}

/**
 * @param {number[]} below left of the diagonal, row by row
 * @param {number[]} diagonal
 * @param {number[]} above
 * @param {number[]} right
 */
function solveTridiagonal(below, diagonal, above, right) {
  const pivots = [...diagonal];
  const values = [...right];
  for (let row = 1; row < pivots.length; row += 1) {
    const factor = below[row] / pivots[row - 1];
    pivots[row] -= factor * above[row - 1];
    values[row] -= factor * values[row - 1];
  }
  for (let row = pivots.length - 1; row >= 0; row -= 1) {
    if (row + 1 < pivots.length) values[row] -= above[row] * values[row + 1];
    values[row] /= pivots[row];
  }
  return values;
}

/**
 * Where a policy settles; null where no formula is known. A threshold that learns is taken to have settled.
 * @param {{policy: string, threshold: number, choices: number, delay: number}} spec
 * @param {number} load
 * @param {number} threshold the one in force
 * @returns {number[] | null}
 */
export function equilibrium(spec, load, threshold) {
  if (spec.delay > 0 && spec.policy !== "random") return null;
  if (spec.policy === "threshold") return thresholdEquilibrium(load, threshold);
  if (spec.policy === "jsq") return balanced(load);
  if (spec.policy === "random") return poissonTail(load, 0, Infinity);
  return spec.policy === "power-of-d" ? powerOfDEquilibrium(load, spec.choices) : null;
}

/**
 * The mean number of tasks in the fullest of `pools` independent pools: exact under random routing.
 * @param {number[]} occupancy
 * @param {number} pools
 */
export function meanMaximum(occupancy, pools) {
  return occupancy.slice(1).reduce((sum, share) => sum - Math.expm1(pools * Math.log1p(-Math.min(share, 1 - 1e-16))), 0);
}

/** @param {number | string} decimal */
function digits(decimal) {
  return (String(decimal).split(".")[1] ?? "").length;
}

/**
 * Bounds on the threshold that learning settles at, exact for decimals. Paper: Thm 6, Prop. 6.
 * @param {number} load
 * @param {string} alpha
 * @returns {[number, number]}
 */
export function settledThreshold(load, alpha) {
  const scale = 10 ** Math.max(digits(load), digits(alpha));
  return [Math.ceil(load) - 1, Math.floor(Math.round(load * scale) / Math.round(Number(alpha) * scale))];
}

/**
 * Whether alpha makes the threshold settle at floor(load). Paper: Cor. 2, eq. (14).
 * @param {number} load
 * @param {string} alpha
 */
export function isOptimal(load, alpha) {
  const scale = 10 ** Math.max(digits(load), digits(alpha));
  return Math.round(load * scale) < Math.round(Number(alpha) * scale) * (Math.floor(load) + 1);
}

/**
 * A bound on the time until the threshold settles; null where none is known. Paper: Prop. 7, eq. (15).
 * @param {number} load
 * @param {string} alpha
 * @param {number} start tasks per pool at time 0
 */
export function settleTimeBound(load, alpha, start) {
  if (Number.isInteger(load) || !isOptimal(load, alpha)) return null;
  const below = Math.floor(load);
  const fill = Math.log(load / (load - below));
  if (start <= load) return fill;
  return Math.max(Math.log((start - load) / (Number(alpha) * (below + 1) - load)), 0) + fill;
}

/**
 * The least alpha for loads up to `most`. Paper: Sec. 4.5, eq. (13).
 * @param {number} most
 */
export function alphaMin(most) {
  return most / (most + 1);
}
