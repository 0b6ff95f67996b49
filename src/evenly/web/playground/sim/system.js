/** Make a simulated system from its description, and copy one, to come back to it later. */

import { InstantSystem } from "./instant.js";
import { LateSystem } from "./late.js";

/** @typedef {InstantSystem | LateSystem} System */

/**
 * @param {import("./base.js").Spec} spec
 * @returns {System}
 */
export function newSystem(spec) {
  return spec.delay > 0 ? new LateSystem(spec) : new InstantSystem(spec);
}

/**
 * Return a deep copy, with the same classes. Functions are left out: a copy has no listeners.
 * @template T
 * @param {T} value
 * @param {Map<object, object>} [known]
 * @returns {T}
 */
export function copied(value, known = new Map()) {
  if (typeof value === "function") return /** @type {T} */ (null);
  if (typeof value !== "object" || value === null) return value;
  const seen = known.get(value);
  if (seen !== undefined) return /** @type {T} */ (seen);
  if (ArrayBuffer.isView(value)) {
    const array = /** @type {any} */ (value).slice();
    known.set(value, array);
    return array;
  }
  if (value instanceof Map) {
    const map = new Map();
    known.set(value, map);
    for (const [key, each] of value) map.set(key, copied(each, known));
    return /** @type {T} */ (map);
  }
  const twin = Array.isArray(value) ? new Array(value.length) : Object.create(Object.getPrototypeOf(value));
  known.set(value, twin);
  for (const key of Object.keys(value)) twin[key] = copied(/** @type {any} */ (value)[key], known);
  return twin;
}
