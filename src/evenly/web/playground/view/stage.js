/**
 * The stage: pools as columns of tasks, the tokens that the dispatcher holds, the threshold and what flies between.
 *
 * Pure drawing, from a lane's last frame. Geometry is kept apart, for the pointer.
 */

import { color } from "../../common/theme.js";
import { drawFlights } from "./flights.js";

/** @typedef {import("./painter.js").Painter} Painter */

/**
 * @typedef {object} Look what the stage needs to know about a lane
 * @property {import("../engine/engine.js").LaneFrame} frame
 * @property {import("./flights.js").Flights | null} flights
 * @property {boolean} hasTokens
 * @property {boolean} hasThreshold
 * @property {number} levels rows that fit
 * @property {number} selected pool, -1 for none
 * @property {boolean} focused
 * @property {number | null} dragged threshold under the pointer
 * @property {number} time
 * @property {number[] | null} settled predicted share of pools with exactly i tasks, once settled
 */

/** @typedef {ReturnType<typeof geometry>} Geometry */

const LEFT = 30;
const BOTTOM = 20;
const TOP = 62; // the dispatcher's

/**
 * @param {number} width
 * @param {number} height
 * @param {number} pools
 * @param {number} levels
 * @param {number} scale of text and what is around it
 */
export function geometry(width, height, pools, levels, scale = 1) {
  const left = LEFT * scale;
  const top = TOP * scale;
  const side = width < 520 * scale ? 56 * scale : Math.min(width * 0.16, 150 * scale);
  const narrow = width < 520 * scale;
  const gutter = (narrow ? 46 : 102) * scale; // for the name of the line that matters, beside the columns
  const columns = Math.max(width - left - side - gutter, 10);
  const column = columns / pools;
  const base = height - BOTTOM * scale;
  const row = (base - top) / levels;
  const gap = column > 5 ? Math.min(column * 0.18, 6) : column > 2.5 ? 0.8 : 0;
  return {
    scale,
    width,
    height,
    top,
    left,
    columns,
    column,
    narrow,
    gutter,
    side: { x: left + columns + gutter, width: side - 4 },
    row,
    gap,
    base,
    tokenRow: 39 * scale,
    /** @param {number} pool */
    x: (pool) => left + pool * column,
    /** @param {number} level */
    y: (level) => base - level * row,
    /** @param {number} x */
    poolAt: (x) => Math.floor((x - left) / column),
    /** @param {number} y */
    levelAt: (y) => (base - y) / row,
  };
}

/**
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
export function drawStage(painter, g, look) {
  drawAxis(painter, g, look);
  drawTasks(painter, g, look);
  drawShares(painter, g, look);
  drawTray(painter, g, look);
  if (look.hasTokens) drawTokens(painter, g, look);
  drawEvenShare(painter, g, look);
  if (look.hasThreshold) drawThreshold(painter, g, look);
  if (look.flights !== null) drawFlights(painter, g, look.flights, look.time);
  drawCounts(painter, g, look); // text last: what flies must not hide it
  drawLabel(painter, g, look);
  drawSelection(painter, g, look);
}

/**
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawAxis(painter, g, look) {
  const every = [1, 2, 5, 10, 20].find((step) => g.row * step >= 16 * g.scale) ?? 50;
  for (let level = 0; level <= look.levels; level += every) {
    painter.line([g.left, g.y(level), g.left + g.columns, g.y(level)], color("--line"), 1, []);
    if (level > 0 || every === 1) {
      painter.text(String(level), g.left - 6, g.y(level), { fill: color("--text-soft"), size: 12 * g.scale, align: "right" });
    }
  }
  const count = look.frame.tasks.length;
  painter.text(`${count} pools`, g.left + g.columns, g.height - 8 * g.scale, {
    fill: color("--text-soft"),
    size: 12 * g.scale,
    align: "right",
  });
}

/**
 * The tasks of each pool as they are drawn: without those that still fly. -1 is a pool that was killed.
 * @param {Look} look
 */
export function shownTasks({ frame, flights }) {
  return frame.tasks.map((tasks, pool) => (tasks < 0 ? tasks : Math.max(tasks - (flights?.landing[pool] ?? 0), 0)));
}

/**
 * Draw tasks as cells, those above an even share in another color, or as bars where there is no room for cells.
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawTasks(painter, g, look) {
  const { loadPerPool } = look.frame;
  const tasks = shownTasks(look);
  const even = Math.ceil(loadPerPool - 1e-9);
  const cells = g.row >= 5 && g.column >= 5;
  const inset = cells ? Math.min(1.5, g.row * 0.1) : 0;
  const width = Math.max(g.column - g.gap, 0.5);
  /** @type {number[]} */
  const within = [];
  /** @type {number[]} */
  const above = [];
  /** @type {number[]} */
  const dead = [];
  for (let pool = 0; pool < tasks.length; pool += 1) {
    const x = g.x(pool) + g.gap / 2;
    if (tasks[pool] < 0) {
      dead.push(x, g.top, width, g.base - g.top);
      continue;
    }
    const count = tasks[pool];
    if (!cells) {
      const full = Math.min(count, even);
      if (full > 0) within.push(x, g.y(full), width, g.base - g.y(full));
      if (count > even) above.push(x, g.y(count), width, g.y(even) - g.y(count));
      continue;
    }
    for (let level = 0; level < count; level += 1) {
      (level < even ? within : above).push(x, g.y(level + 1) + inset, width, g.row - 2 * inset);
    }
  }
  painter.boxes(dead, color("--sunken"));
  painter.boxes(within, color("--series-1"));
  painter.boxes(above, color("--token-red"));
  if (cells) drawMarks(painter, above);
  for (let at = 0; at < dead.length && g.column >= 8; at += 4) {
    const [x, y] = [dead[at] + dead[at + 2] / 2, g.base - 12];
    const ink = color("--text-soft");
    painter.line([x - 4, y - 4, x + 4, y + 4], ink, 2, []);
    painter.line([x - 4, y + 4, x + 4, y - 4], ink, 2, []);
  }
}

/**
 * Mark cells above an even share with a dot, for readers who cannot tell the colors apart.
 * @param {Painter} painter
 * @param {number[]} cells
 */
function drawMarks(painter, cells) {
  /** @type {number[]} */
  const marks = [];
  for (let at = 0; at < cells.length; at += 4) {
    const size = Math.min(cells[at + 2], cells[at + 3]) / 3;
    if (size < 2) continue;
    marks.push(cells[at] + (cells[at + 2] - size) / 2, cells[at + 1] + (cells[at + 3] - size) / 2, size, size);
  }
  painter.boxes(marks, color("--surface"));
}

/**
 * Draw the number of pools at each height beside the columns, to a scale of its own, and what theory predicts.
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawShares(painter, g, look) {
  const { x, width } = g.side;
  const soft = { fill: color("--text-soft"), size: 12 * g.scale, align: /** @type {const} */ ("left") };
  const title = width > 90 * g.scale ? ["pools with", "this many tasks"] : ["pools"];
  title.forEach((line, at) => painter.text(line, x, g.top - (8 + 14 * (title.length - 1 - at)) * g.scale, soft));
  /** @type {number[]} */
  const counts = new Array(look.levels + 1).fill(0);
  let alive = 0;
  for (const tasks of shownTasks(look)) {
    if (tasks >= 0) alive += 1;
    if (tasks >= 0 && tasks <= look.levels) counts[tasks] += 1;
  }
  const most = Math.max(...counts.map((count) => count / alive), ...(look.settled ?? [])) || 1;
  const thick = Math.min(g.row * 0.62, 16 * g.scale);
  /** @type {number[]} */
  const bars = [];
  counts.forEach((count, level) => {
    if (count > 0) bars.push(x, g.y(level) - thick / 2, (count / alive / most) * width, thick);
  });
  painter.boxes(bars, color("--line-strong"));
  painter.line([x, g.top, x, g.base], color("--line-strong"), 1, []);
  /** @type {number[]} */
  const ticks = [];
  look.settled?.forEach((share, level) => {
    if (share > 0.002 && level < look.levels) ticks.push(x + (share / most) * width - 1.5, g.y(level) - thick * 0.7, 3, thick * 1.4);
  });
  painter.boxes(ticks, color("--text"));
}

/**
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawTray(painter, g, look) {
  painter.boxes([g.left, 3, g.columns, (look.hasTokens ? 48 : 24) * g.scale], color("--sunken"));
  if (look.hasTokens) painter.line([g.left, 27 * g.scale, g.left + g.columns, 27 * g.scale], color("--line"), 1, []);
}

/**
 * Write what the dispatcher has placed and heard.
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawCounts(painter, g, look) {
  const { averages } = look.frame;
  const { green, yellow, other, resync, tasks } = averages.messages;
  const { scale } = g;
  const y = 15 * scale;
  const ink = { fill: color("--text"), size: 12 * scale, align: /** @type {const} */ ("left") };
  const narrow = g.columns < 330 * scale;
  if (!narrow) painter.text("dispatcher", g.left + 8 * scale, y, { ...ink, bold: true });
  const placed = `${tasks} ${narrow ? "tasks" : "tasks placed"}`;
  painter.text(placed, g.left + (narrow ? 8 : 84) * scale, y, { ...ink, fill: color("--text-soft") });
  let x = g.left + g.columns - 8 * scale;
  const right = { ...ink, align: /** @type {const} */ ("right") };
  if (look.hasTokens) {
    const yellows = String(yellow + resync);
    painter.text(yellows, x, y, right);
    x -= (8 * yellows.length + 9) * scale;
    painter.token("yellow", x, y, 5 * scale);
    x -= 12 * scale;
    painter.text(String(green), x, y, right);
    x -= (8 * String(green).length + 9) * scale;
    painter.token("green", x, y, 4.5 * scale);
  } else {
    const word = other === 1 ? "message" : "messages";
    painter.text(`${other} ${word}`, x, y, { ...right, fill: color("--text-soft") });
  }
}

/**
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawTokens(painter, g, look) {
  const { tokens } = look.frame;
  const radius = Math.min(g.column * 0.32, 6 * g.scale);
  if (radius < 1.6) {
    // No room for shapes: green marks are tall, yellow ones are short.
    /** @type {number[]} */
    const greens = [];
    /** @type {number[]} */
    const yellows = [];
    for (let pool = 0; pool < tokens.length; pool += 1) {
      if (tokens[pool] === 2) greens.push(g.x(pool), g.tokenRow - 8 * g.scale, g.column, 16 * g.scale);
      else if (tokens[pool] === 1) yellows.push(g.x(pool), g.tokenRow, g.column, 8 * g.scale);
    }
    painter.boxes(greens, color("--token-green"));
    painter.boxes(yellows, color("--token-yellow"));
    return;
  }
  for (let pool = 0; pool < tokens.length; pool += 1) {
    if (tokens[pool] === 0) continue;
    painter.token(tokens[pool] === 2 ? "green" : "yellow", g.x(pool) + g.column / 2, g.tokenRow, radius);
  }
}

/**
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawEvenShare(painter, g, look) {
  const { loadPerPool } = look.frame;
  if (loadPerPool > look.levels) return;
  painter.line([g.left, g.y(loadPerPool), g.left + g.columns, g.y(loadPerPool)], color("--text"), 1.5, [2, 4]);
}

/**
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawThreshold(painter, g, look) {
  const at = look.dragged ?? look.frame.threshold;
  const y = g.y(Math.min(at, look.levels));
  const ink = color("--threshold");
  painter.line([g.left, y, g.left + g.columns, y], ink, 3, []);
  const x = g.left + g.columns;
  painter.shape([x - 1, y, x + 9 * g.scale, y - 9 * g.scale, x + 9 * g.scale, y + 9 * g.scale], ink);
}

/**
 * Name the line that matters, beside the columns: the threshold where there is one, else the even share.
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawLabel(painter, g, look) {
  const { threshold, loadPerPool } = look.frame;
  const at = look.dragged ?? threshold;
  if (look.hasThreshold) pill(painter, g, "threshold", String(at), g.y(Math.min(at, look.levels)), "--threshold");
  else if (loadPerPool <= look.levels) pill(painter, g, "even share", round(loadPerPool), g.y(loadPerPool), "--text");
}

/**
 * A label in the gutter; where that is narrow, the number alone.
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {string} name
 * @param {string} value
 * @param {number} at
 * @param {string} ground
 */
function pill(painter, g, name, value, at, ground) {
  const { scale } = g;
  const lines = g.narrow ? [value] : [name, value];
  const [x, width, height] = [g.left + g.columns + 8 * scale, g.gutter - 18 * scale, (4 + 15 * lines.length) * scale];
  const y = Math.min(at, g.base - height / 2);
  painter.boxes([x, y - height / 2, width, height], color(ground));
  const look = { fill: color("--surface"), size: 12 * scale, align: /** @type {const} */ ("center"), bold: true };
  lines.forEach((line, row) => painter.text(line, x + width / 2, y + (row - (lines.length - 1) / 2) * 15 * scale, look));
}

/**
 * @param {Painter} painter
 * @param {Geometry} g
 * @param {Look} look
 */
function drawSelection(painter, g, look) {
  if (look.selected < 0 || look.selected >= look.frame.tasks.length) return;
  const x = g.x(look.selected);
  const points = [x, g.top - 2, x + g.column, g.top - 2, x + g.column, g.base + 2, x, g.base + 2, x, g.top - 2];
  painter.line(points, color(look.focused ? "--focus" : "--line-strong"), look.focused ? 2.5 : 1, []);
}

/** @param {number} value */
function round(value) {
  return String(Math.round(value * 100) / 100);
}
