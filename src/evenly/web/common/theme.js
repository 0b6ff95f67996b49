// The system's preferences, for what CSS does not reach: canvases need colors and know no media queries.

const dark = matchMedia("(prefers-color-scheme: dark)");
const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** @type {Map<string, string>} */
const known = new Map();
dark.addEventListener("change", () => known.clear());

/**
 * Return the value of a CSS variable of the page, such as `--token-green`.
 *
 * @param {string} name
 */
export function color(name) {
  let value = known.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    known.set(name, value);
  }
  return value;
}

/**
 * Call `draw` whenever the colors change.
 *
 * @param {() => void} draw
 */
export function onColorsChange(draw) {
  dark.addEventListener("change", draw);
}

/** Return whether animations should be left out. */
export function prefersStillness() {
  return reduced.matches;
}

const TEXT_PX = 12; // of the text on a canvas, at least
const MOST_PX = 24;

/**
 * Return how much larger than `TEXT_PX` text on a canvas is, so that it grows with the text around it: CSS makes that
 * larger on wide screens.
 */
export function textScale() {
  const around = parseFloat(getComputedStyle(document.body).fontSize);
  return Math.min(Math.max(0.8 * around, TEXT_PX), MOST_PX) / TEXT_PX;
}
