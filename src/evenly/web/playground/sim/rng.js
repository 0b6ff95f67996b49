/**
 * Random numbers: the streams of `evenly.sim.kernels.rng`, number for number.
 *
 * xoshiro256++ (Blackman and Vigna, 2021), 64 of them taken in turn, and exponentials from a 256-strip ziggurat
 * (Marsaglia and Tsang, 2000). Words of 64 bits are two halves of 32, which is many times faster than BigInt.
 */

import { seedWords, spreadSeed } from "./seed.js";
import { STRIPS, ziggurat } from "./ziggurat.js";

export const BUFFER = 512;
const LANES = 64;
const TWO_53 = 2 ** 53;
const EDGE = ziggurat();
const TAIL = EDGE[STRIPS - 1]; // where the base strip's tail begins
const ACCEPT = new Float64Array(STRIPS);
const WIDTH = EDGE.map((edge) => edge / TWO_53);
const HEIGHT = EDGE.map((edge, strip) => (strip === 0 ? 1 : Math.exp(-edge)));
for (let strip = 1; strip < STRIPS; strip += 1) {
  ACCEPT[strip] = Math.floor((strip === 1 ? 0 : EDGE[strip - 1] / EDGE[strip]) * TWO_53);
}
ACCEPT[0] = Math.floor((TAIL / EDGE[0]) * TWO_53);

/** A xoshiro256++ generator with one or more lanes, and the last numbers that it drew. */
class Generator {
  /**
   * @param {bigint} word
   * @param {number} lanes
   */
  constructor(word, lanes) {
    this.lanes = lanes;
    this.high = new Uint32Array(4 * lanes);
    this.low = new Uint32Array(4 * lanes);
    spreadSeed(word, this.high, this.low);
  }

  /**
   * Draw as many words as the arrays hold, from each lane in turn.
   * @param {Uint32Array} outHigh
   * @param {Uint32Array} outLow
   */
  fill(outHigh, outLow) {
    const { high, low, lanes } = this;
    const [atB, atC, atD] = [lanes, 2 * lanes, 3 * lanes];
    for (let first = 0; first < outHigh.length; first += lanes) {
      for (let lane = 0; lane < lanes; lane += 1) {
        const aH = high[lane];
        const aL = low[lane];
        const bH = high[lane + atB];
        const bL = low[lane + atB];
        let dH = high[lane + atD];
        let dL = low[lane + atD];
        // rotate(a + d, 23) + a
        const sumL = (aL + dL) >>> 0;
        const sumH = (aH + dH + (sumL < aL ? 1 : 0)) | 0;
        const turnH = ((sumH << 23) | (sumL >>> 9)) >>> 0;
        const turnL = ((sumL << 23) | (sumH >>> 9)) >>> 0;
        const drawnL = (turnL + aL) >>> 0;
        outLow[first + lane] = drawnL;
        outHigh[first + lane] = turnH + aH + (drawnL < aL ? 1 : 0);
        const cH = high[lane + atC] ^ aH;
        const cL = low[lane + atC] ^ aL;
        dH ^= bH;
        dL ^= bL;
        high[lane + atB] = bH ^ cH;
        low[lane + atB] = bL ^ cL;
        high[lane] = aH ^ dH;
        low[lane] = aL ^ dL;
        high[lane + atC] = cH ^ ((bH << 17) | (bL >>> 15));
        low[lane + atC] = cL ^ (bL << 17);
        // rotate(d, 45) is a swap of the halves and a rotation by 13
        high[lane + atD] = (dL << 13) | (dH >>> 19);
        low[lane + atD] = (dH << 13) | (dL >>> 19);
      }
    }
  }
}

const bitsHigh = new Uint32Array(BUFFER);
const bitsLow = new Uint32Array(BUFFER);
const oneHigh = new Uint32Array(1);
const oneLow = new Uint32Array(1);

/** Uniforms on [0, 1), drawn in buffers. */
export class Uniforms {
  /** @param {bigint} word */
  constructor(word) {
    this.generator = new Generator(word, LANES);
    this.values = new Float64Array(BUFFER);
    this.refill();
  }

  refill() {
    this.generator.fill(bitsHigh, bitsLow);
    for (let m = 0; m < BUFFER; m += 1) {
      this.values[m] = (bitsHigh[m] * 2 ** 21 + (bitsLow[m] >>> 11)) / TWO_53;
    }
  }
}

/** Standard exponentials, drawn in buffers. */
export class Exponentials {
  /**
   * @param {bigint} word
   * @param {bigint} spare for the rare draws that the ziggurat rejects at first
   */
  constructor(word, spare) {
    this.generator = new Generator(word, LANES);
    this.spare = new Generator(spare, 1);
    this.values = new Float64Array(BUFFER);
    this.refill();
  }

  refill() {
    this.generator.fill(bitsHigh, bitsLow);
    for (let m = 0; m < BUFFER; m += 1) {
      const strip = bitsLow[m] & (STRIPS - 1);
      const mantissa = bitsHigh[m] * 2 ** 21 + (bitsLow[m] >>> 11);
      this.values[m] = mantissa < ACCEPT[strip] ? mantissa * WIDTH[strip] : this._mended(strip, mantissa);
    }
  }

  /**
   * Return the exponential of a draw that may be outside its strip; new draws come from the spare.
   * @param {number} strip
   * @param {number} mantissa
   */
  _mended(strip, mantissa) {
    for (;;) {
      const x = mantissa * WIDTH[strip];
      if (mantissa < ACCEPT[strip]) return x;
      const uniform = this._spareMantissa() / TWO_53;
      if (strip === 0) return TAIL - Math.log1p(-uniform); // the tail is exponential again
      const low = HEIGHT[strip];
      if (low + uniform * (HEIGHT[strip - 1] - low) < Math.exp(-x)) return x;
      mantissa = this._spareMantissa();
      strip = oneLow[0] & (STRIPS - 1);
    }
  }

  _spareMantissa() {
    this.spare.fill(oneHigh, oneLow);
    return oneHigh[0] * 2 ** 21 + (oneLow[0] >>> 11);
  }
}

/** The streams of one run: holding times, events and choices, with places in their buffers. */
export class Streams {
  /** @param {number} seed */
  constructor(seed) {
    const words = seedWords(seed, [0], 4);
    this.holding = new Exponentials(words[0], words[3]);
    this.events = new Uniforms(words[1]);
    this.choices = new Uniforms(words[2]);
    this.position = 0; // in holding and events
    this.choicePosition = 0;
  }

  /** Move on to the next event. */
  next() {
    this.position += 1;
    if (this.position === BUFFER) {
      this.holding.refill();
      this.events.refill();
      this.position = 0;
    }
  }

  /**
   * Make sure that the next `count` choices come from one buffer.
   * @param {number} count
   */
  reserve(count) {
    if (this.choicePosition + count > BUFFER) {
      this.choices.refill();
      this.choicePosition = 0;
    }
  }

  choice() {
    this.reserve(1);
    this.choicePosition += 1;
    return this.choices.values[this.choicePosition - 1];
  }
}

/** The delays of tasks or of messages: a constant, or exponential times its mean. */
export class Delays {
  /**
   * @param {bigint[]} words
   * @param {number} mean
   * @param {boolean} exponential
   */
  constructor(words, mean, exponential) {
    this.mean = mean;
    this.source = exponential ? new Exponentials(words[0], words[1]) : null;
    this.position = 0;
  }

  next() {
    if (this.source === null) return this.mean;
    if (this.position === BUFFER) {
      this.source.refill();
      this.position = 0;
    }
    this.position += 1;
    return this.mean * this.source.values[this.position - 1];
  }
}

/**
 * Return the delays of tasks and of messages. They depend on the seed alone, so that all policies share them.
 * @param {number} seed
 * @param {number} mean
 * @param {boolean} exponential
 */
export function newDelays(seed, mean, exponential) {
  const words = seedWords(seed, [0, 1], 4);
  return {
    travel: new Delays(words.slice(0, 2), mean, exponential),
    signal: new Delays(words.slice(2), mean, exponential),
  };
}
