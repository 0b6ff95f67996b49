/**
 * Seeds: NumPy's SeedSequence and the SplitMix64 that spreads a word over a generator's state.
 *
 * The words are those of `numpy.random.SeedSequence(seed, spawn_key=key).generate_state(4, uint64)`, so that a run has
 * the random numbers of `evenly simulate` with the same seed.
 */

const INIT_A = 0x43b0d7e5;
const MULT_A = 0x931e8875;
const INIT_B = 0x8b51f9dd;
const MULT_B = 0x58f38ded;
const MIX_L = 0xca01f9dd;
const MIX_R = 0x4973f715;
const POOL = 4; // words of entropy

/**
 * @param {number} seed a whole number below 2**53
 * @param {number[]} key
 * @param {number} count
 * @returns {bigint[]} words of 64 bits
 */
export function seedWords(seed, key, count) {
  const pool = mixed(entropyWords(seed, key));
  let constant = INIT_B;
  /** @type {bigint[]} */
  const words = [];
  let low = 0;
  for (let index = 0; index < 2 * count; index += 1) {
    let word = pool[index % POOL] ^ constant;
    constant = Math.imul(constant, MULT_B);
    word = Math.imul(word, constant);
    word = (word ^ (word >>> 16)) >>> 0;
    if (index % 2 === 0) low = word;
    else words.push((BigInt(word) << 32n) | BigInt(low));
  }
  return words;
}

/**
 * @param {number} seed
 * @param {number[]} key
 */
function entropyWords(seed, key) {
  const high = Math.floor(seed / 2 ** 32);
  const words = high > 0 ? [seed % 2 ** 32, high] : [seed];
  while (words.length < POOL) words.push(0);
  return [...words, ...key];
}

/** @param {number[]} entropy */
function mixed(entropy) {
  let constant = INIT_A;
  const hashed = (/** @type {number} */ value) => {
    let word = value ^ constant;
    constant = Math.imul(constant, MULT_A);
    word = Math.imul(word, constant);
    return (word ^ (word >>> 16)) >>> 0;
  };
  const mix = (/** @type {number} */ x, /** @type {number} */ y) => {
    const word = (Math.imul(MIX_L, x) - Math.imul(MIX_R, y)) >>> 0;
    return (word ^ (word >>> 16)) >>> 0;
  };
  const pool = entropy.slice(0, POOL).map(hashed);
  for (let from = 0; from < POOL; from += 1) {
    for (let to = 0; to < POOL; to += 1) {
      if (from !== to) pool[to] = mix(pool[to], hashed(pool[from]));
    }
  }
  for (const word of entropy.slice(POOL)) {
    for (let to = 0; to < POOL; to += 1) pool[to] = mix(pool[to], hashed(word));
  }
  return pool;
}

/**
 * Spread one word over a state, as the authors of xoshiro advise.
 * @param {bigint} word
 * @param {Uint32Array} high upper halves of the state's words
 * @param {Uint32Array} low
 */
export function spreadSeed(word, high, low) {
  for (let index = 0; index < high.length; index += 1) {
    word = BigInt.asUintN(64, word + 0x9e3779b97f4a7c15n);
    let bits = BigInt.asUintN(64, (word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n);
    bits = BigInt.asUintN(64, (bits ^ (bits >> 27n)) * 0x94d049bb133111ebn);
    bits ^= bits >> 31n;
    high[index] = Number(bits >> 32n);
    low[index] = Number(bits & 0xffffffffn);
  }
}
