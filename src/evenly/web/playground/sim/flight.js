/** Tasks and messages on the way, by the time at which they arrive; on a tie, in the order in which they were sent. */

/**
 * @typedef {object} Letter
 * @property {number} due
 * @property {number} serial
 * @property {number} kind
 * @property {number} pool
 * @property {number} a numbers that depend on the kind
 * @property {number} b
 * @property {number} c
 * @property {number} d
 */

/**
 * @param {Letter} one
 * @param {Letter} other
 */
function before(one, other) {
  return one.due < other.due || (one.due === other.due && one.serial < other.serial);
}

export class Flight {
  constructor() {
    /** @type {Letter[]} a binary heap */
    this.heap = [];
    this.serial = 0;
  }

  get length() {
    return this.heap.length;
  }

  get nextDue() {
    return this.heap.length > 0 ? this.heap[0].due : Infinity;
  }

  /**
   * @param {number} due
   * @param {number} kind
   * @param {number} pool
   * @param {number} [a]
   * @param {number} [b]
   * @param {number} [c]
   * @param {number} [d]
   */
  send(due, kind, pool, a = 0, b = 0, c = 0, d = 0) {
    const { heap } = this;
    const letter = { due, serial: this.serial, kind, pool, a, b, c, d };
    this.serial += 1;
    let place = heap.length;
    heap.push(letter);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!before(letter, heap[parent])) break;
      heap[place] = heap[parent];
      place = parent;
    }
    heap[place] = letter;
  }

  /** Take out what arrives next. */
  take() {
    const { heap } = this;
    const first = heap[0];
    const last = /** @type {Letter} */ (heap.pop());
    const size = heap.length;
    if (size === 0) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= size) break;
      if (child + 1 < size && before(heap[child + 1], heap[child])) child += 1;
      if (before(last, heap[child])) break;
      heap[place] = heap[child];
      place = child;
    }
    heap[place] = last;
    return first;
  }
}
