// Numbers and times as text, the same everywhere. English, as the rest of the pages.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/**
 * Write a number with three significant digits at most, whole numbers in full: 0.051, 3.14, 12,345.
 *
 * @param {number | null | undefined} value
 */
export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 1000) return whole.format(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.1 || size === 0 ? 2 : 3);
}

/**
 * Write a number with a noun: "1 session", "12 sessions".
 *
 * @param {number} count
 * @param {string} noun
 */
export function counted(count, noun) {
  return `${whole.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Write a duration in its largest unit: "4 s", "12 min", "3 h", "2 d".
 *
 * @param {number} seconds
 */
export function duration(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

/**
 * Write the time of day of a moment, in the reader's time zone.
 *
 * @param {number} seconds since the epoch
 */
export function clock(seconds) {
  return new Date(seconds * 1000).toTimeString().slice(0, 8);
}
