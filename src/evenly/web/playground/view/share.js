/** What a visitor takes along: a link, a command, a picture, the numbers. */

import { byId } from "../../common/dom.js";
import { color } from "../../common/theme.js";
import { COLUMNS } from "../engine/engine.js";
import { commandOf, leftOut } from "./command.js";
import { svgPainter, canvasPainter } from "./painter.js";
import { drawStage, geometry } from "./stage.js";
import { laneTitle, specsOf, writeLane } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * Copy a text to the clipboard. Return whether that worked.
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Show a text to take along, selected and, where the browser allows it, copied.
 * @param {string} title
 * @param {string} text
 * @param {string} note
 */
export async function offerText(title, text, note) {
  const dialog = byId("share", HTMLDialogElement);
  const area = byId("share-text", HTMLTextAreaElement);
  byId("share-title", HTMLElement).textContent = title;
  byId("share-note", HTMLElement).textContent = note;
  area.value = text;
  dialog.showModal();
  area.select();
  const copied = await copyText(text);
  byId("share-done", HTMLElement).textContent = copied ? "Copied." : "Press Ctrl+C to copy.";
}

/** @param {State} state */
export function commandText(state) {
  const delays = specsOf(state).map((spec) => spec.delay);
  return state.lanes.map((lane, index) => commandOf(state, lane, index, delays[index])).join("\n");
}

/** @param {State} state */
export function commandNote(state) {
  const missing = leftOut(state);
  const same = "It gives the figures in the table: same seed, same random numbers.";
  return missing === "" ? same : `The command line has no option for ${missing}: it runs without.`;
}

/**
 * @param {string} name
 * @param {Blob} blob
 */
function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * @param {State} state
 * @param {string} ending
 */
function fileName(state, ending) {
  return `evenly-${state.scene}-seed${state.seed}-t${Math.round(state.time * 1000) / 1000}.${ending}`;
}

const WIDTH = 1000;
const HEIGHT = 300;
const HEAD = 34;

/**
 * Draw all lanes below each other.
 * @param {State} state
 * @param {import("./lane.js").LaneView[]} views
 * @param {(index: number) => import("./painter.js").Painter} painterAt of each lane
 */
function drawAll(state, views, painterAt) {
  views.forEach((view, index) => {
    const painter = painterAt(index);
    painter.boxes([0, 0, WIDTH, HEIGHT + HEAD], color("--surface"));
    const title = `${laneTitle(view.spec)}, ${state.pools} pools, load ${state.load}, time ${state.time.toFixed(2)}`;
    painter.text(title, 30, 18, { fill: color("--text"), size: 15, align: "left", bold: true });
    drawStage(offset(painter, HEAD), geometry(WIDTH, HEIGHT, state.pools, view.levels), view.look(true));
  });
}

/**
 * A painter that draws further down.
 * @param {import("./painter.js").Painter} painter
 * @param {number} by
 * @returns {import("./painter.js").Painter}
 */
function offset(painter, by) {
  const lower = (/** @type {number[]} */ values, /** @type {number} */ every) =>
    values.map((value, at) => (at % every === 1 ? value + by : value));
  return {
    boxes: (boxes, fill) => painter.boxes(lower(boxes, 4), fill),
    line: (points, stroke, width, dash) => painter.line(lower(points, 2), stroke, width, dash),
    text: (text, x, y, look) => painter.text(text, x, y + by, look),
    token: (token, x, y, radius) => painter.token(token, x, y + by, radius),
    shape: (points, fill) => painter.shape(lower(points, 2), fill),
  };
}

/**
 * @param {State} state
 * @param {import("./lane.js").LaneView[]} views
 */
export function downloadSvg(state, views) {
  const height = (HEIGHT + HEAD) * views.length;
  /** @type {string[]} */
  const out = [];
  drawAll(state, views, (index) => offset(svgPainter(out), index * (HEIGHT + HEAD)));
  const text = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}">${out.join("\n")}</svg>`;
  download(fileName(state, "svg"), new Blob([text], { type: "image/svg+xml" }));
}

/**
 * @param {State} state
 * @param {import("./lane.js").LaneView[]} views
 */
export function downloadPng(state, views) {
  const canvas = document.createElement("canvas");
  const scale = 2;
  canvas.width = WIDTH * scale;
  canvas.height = (HEIGHT + HEAD) * views.length * scale;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(scale, scale);
  drawAll(state, views, (index) => offset(canvasPainter(context), index * (HEIGHT + HEAD)));
  canvas.toBlob((blob) => {
    if (blob !== null) download(fileName(state, "png"), blob);
  });
}

/**
 * One row per time and policy.
 * @param {State} state
 * @param {number[][]} rows
 */
export function csvText(state, rows) {
  const names = ["fullest", "spread", "threshold", "messages_per_task", "tasks_per_pool", "fluid_spread", "fluid_threshold"];
  const lines = [["time", "policy", ...names].join(",")];
  for (const row of rows) {
    if (row[0] > state.time) break;
    state.lanes.forEach((lane, index) => {
      const values = row.slice(1 + index * COLUMNS, 1 + (index + 1) * COLUMNS);
      const shown = values.map((value, at) => (Number.isNaN(value) || (names[at].endsWith("threshold") && lane.policy !== "threshold") ? "" : value));
      lines.push([row[0], writeLane(lane), ...shown].join(","));
    });
  }
  return `${lines.join("\n")}\n`;
}

/**
 * @param {State} state
 * @param {number[][]} rows
 */
export function downloadCsv(state, rows) {
  download(fileName(state, "csv"), new Blob([csvText(state, rows)], { type: "text/csv" }));
}
