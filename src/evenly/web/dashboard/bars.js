// The pools as columns around the threshold line. With many pools, they are in several rows.
//
// Three things say the same, so that no reader depends on color: the color and, where there is room, the shape of the
// token; and the position: a pool with a green token ends below the line, with a yellow one at it.

import { Surface } from "../common/canvas.js";
import { setText } from "../common/dom.js";
import { counted } from "../common/format.js";
import { hatched } from "../common/patterns.js";
import { color, prefersStillness } from "../common/theme.js";
import { TOKEN_VARIABLES, drawToken } from "../common/tokens.js";
import { nameThresholds, wantedTop } from "./axis.js";
import { TOKENS } from "./model.js";

const MIN_PITCH = 5; // CSS pixels from one column to the next
const MAX_PITCH = 110;
const MAX_COLUMN = 46;
const TOKEN_PITCH = 14; // from this pitch on, there is room for a token's shape
const LEFT = 34; // room for labels of the axis; this and the sizes below grow with the text
const SINGLE_ROW = 210;
const ROW = 74;
const NARROW = { width: 600, pitch: 3, row: 52 }; // on a phone, many rows would be a long way to scroll
const GAP = 14;
const EASE_MS = 140;

/**
 * @typedef {object} Layout
 * @property {number} rows
 * @property {number} perRow
 * @property {number} pitch
 * @property {number} height of a row
 */

/** Draws the pools of a model on a canvas. */
export class Bars {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} label follows the pointer
   * @param {import("./model.js").Model} model
   * @param {(position: number) => void} onSelect
   */
  constructor(canvas, label, model, onSelect) {
    this.canvas = canvas;
    this.label = label;
    this.model = model;
    /** @private positions of the tops, on their way to the truth */
    this.shown = new Float32Array(0);
    /** @private */ this.members = -1;
    /** @private */ this.last = 0;
    /** @private */ this.pointed = -1;
    /** @private sessions at the top of the axis, eased too */
    this.top = 1;
    /** @private @type {Layout} */
    this.layout = { rows: 1, perRow: 1, pitch: MAX_PITCH, height: SINGLE_ROW };
    /** @private @type {Map<string, CanvasPattern | string>} */
    this.fills = new Map();
    this.surface = new Surface(canvas, (context, width, _height, now) => this.draw(context, width, now));
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => this.unpoint());
    canvas.addEventListener("click", (event) => {
      const position = this.at(event);
      if (position >= 0) onSelect(position);
    });
  }

  /** Draw what the model has now. */
  update() {
    const count = this.model.names.length;
    if (this.members !== this.model.membersChanged) {
      this.members = this.model.membersChanged;
      this.shown = Float32Array.from(this.model.sessions);
    }
    this.arrange(count);
    this.surface.invalidate();
    if (this.pointed >= 0) this.describe();
  }

  /** Describe the picture in words, for readers who cannot see it. */
  summary() {
    const { model } = this;
    const threshold = model.figures?.threshold;
    const tokens = [0, 0, 0];
    for (const token of model.tokenAt) tokens[token] = (tokens[token] ?? 0) + 1;
    const line = threshold === null || threshold === undefined ? "" : ` The threshold is ${threshold}.`;
    const [none, yellow, green] = tokens;
    return `${counted(model.names.length, "pool")}: ${green} with a green token, ${yellow} yellow, ${none} none.${line}`;
  }

  /** @private @param {number} count */
  arrange(count) {
    const { scale } = this.surface;
    const width = Math.max(this.surface.width - this.start - 4, 40);
    const narrow = width < NARROW.width;
    const least = narrow ? NARROW.pitch : MIN_PITCH;
    const pitch = Math.min(Math.max(width / Math.max(count, 1), least), MAX_PITCH * scale);
    const perRow = Math.max(Math.floor(width / pitch), 1);
    const rows = Math.max(Math.ceil(count / perRow), 1);
    this.layout = { rows, perRow, pitch, height: (rows === 1 ? SINGLE_ROW : narrow ? NARROW.row : ROW) * scale };
    const height = `${rows * (this.layout.height + this.gap)}px`;
    if (this.canvas.style.height !== height) this.canvas.style.height = height;
  }

  /**
   * @private
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} now
   */
  draw(context, width, now) {
    const { model } = this;
    const count = Math.min(model.names.length, this.shown.length);
    this.arrange(model.names.length);
    const share = prefersStillness() || this.last === 0 ? 1 : 1 - Math.exp(-Math.min(now - this.last, 100) / EASE_MS);
    this.last = now;
    let moving = this.ease(count, share);
    moving = this.easeTop(share) || moving;
    this.fills.clear();
    const groups = this.group(count);
    for (let row = 0; row < this.layout.rows; row += 1) this.drawFrame(context, row, width);
    for (const [style, positions] of groups) this.drawColumns(context, style, positions);
    if (this.layout.pitch >= TOKEN_PITCH) this.drawTokens(context, count);
    for (let row = 0; row < this.layout.rows; row += 1) this.drawThreshold(context, row, width, count);
    if (this.pointed >= 0 && this.pointed < count) this.drawPointed(context);
    if (!moving) this.last = 0;
    return moving;
  }

  /**
   * @private
   * @param {number} count
   * @param {number} share
   */
  ease(count, share) {
    const { shown } = this;
    const truth = this.model.sessions;
    let moving = false;
    for (let at = 0; at < count; at += 1) {
      const gap = (truth[at] ?? 0) - (shown[at] ?? 0);
      if (Math.abs(gap) < 0.02) shown[at] = truth[at] ?? 0;
      else {
        shown[at] = (shown[at] ?? 0) + gap * share;
        moving = true;
      }
    }
    return moving;
  }

  /** @private @param {number} share */
  easeTop(share) {
    const gap = wantedTop(this.model) - this.top;
    const moving = Math.abs(gap) >= 0.02;
    this.top += moving ? gap * share : gap;
    return moving;
  }

  /** @private @param {number} count */
  group(count) {
    /** @type {Map<string, number[]>} */
    const groups = new Map();
    for (let at = 0; at < count; at += 1) {
      const style = `${TOKENS[this.model.tokenAt[at] ?? 0]}/${this.model.stateOf(at)}`;
      const group = groups.get(style);
      if (group === undefined) groups.set(style, [at]);
      else group.push(at);
    }
    return groups;
  }

  /** @private @param {number} sessions */
  rise(sessions) {
    return Math.min(1, sessions / this.top) * this.layout.height;
  }

  /** Where the first column begins. @private */
  get start() {
    return Math.round(LEFT * this.surface.scale);
  }

  /** The pixels between two rows. @private */
  get gap() {
    return Math.round(GAP * this.surface.scale);
  }

  /** @private @param {number} row */
  base(row) {
    return row * (this.layout.height + this.gap) + this.layout.height + 2;
  }

  /** Return the width of a column. @private */
  column() {
    const { pitch } = this.layout;
    return pitch > 8 ? Math.min(pitch * 0.78, MAX_COLUMN * this.surface.scale) : pitch - 1;
  }

  /** @private @param {number} position */
  left(position) {
    return this.start + (position % this.layout.perRow) * this.layout.pitch;
  }

  /**
   * @private
   * @param {CanvasRenderingContext2D} context
   * @param {number} row
   * @param {number} width
   */
  drawFrame(context, row, width) {
    const base = this.base(row);
    context.strokeStyle = color("--line");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(this.start, base + 0.5);
    context.lineTo(width, base + 0.5);
    context.stroke();
    context.fillStyle = color("--text-soft");
    context.font = `${12 * this.surface.scale}px ${color("--font")}`;
    context.textAlign = "right";
    context.textBaseline = "alphabetic";
    context.fillText("0", this.start - 8, base);
  }

  /**
   * @private
   * @param {CanvasRenderingContext2D} context
   * @param {string} style
   * @param {number[]} positions
   */
  drawColumns(context, style, positions) {
    const [token = "none", state = ""] = style.split("/");
    const { pitch, perRow } = this.layout;
    const width = this.column();
    const hollow = state === "draining" || state === "leaving" || state === "silent";
    const inset = hollow ? 0.75 : 0;
    context.beginPath();
    for (const at of positions) {
      const height = Math.max(this.rise(this.shown[at] ?? 0), 1.5);
      const top = this.base(Math.floor(at / perRow)) - height;
      context.rect(this.left(at) + (pitch - width) / 2 + inset, top + inset, width - 2 * inset, height - inset);
    }
    if (hollow) {
      context.strokeStyle = color("--line-strong");
      context.lineWidth = 1.5;
      context.setLineDash(state === "draining" ? [] : [3, 2]);
      context.stroke();
      context.setLineDash([]);
    } else {
      context.fillStyle = this.fill(context, token, state);
      context.fill();
    }
  }

  /**
   * @private
   * @param {CanvasRenderingContext2D} context
   * @param {string} token
   * @param {string} state
   */
  fill(context, token, state) {
    const key = `${token}/${state}`;
    const known = this.fills.get(key);
    if (known !== undefined) return known;
    const variable = TOKEN_VARIABLES[/** @type {import("../common/tokens.js").Token} */ (token)];
    const base = color(state === "failing" ? "--token-red" : variable);
    const made = state === "warming" || state === "full" || state === "failing" ? hatched(context, base, state === "failing") : base;
    this.fills.set(key, made);
    return made;
  }

  /**
   * @private
   * @param {CanvasRenderingContext2D} context
   * @param {number} count
   */
  drawTokens(context, count) {
    const { pitch, perRow } = this.layout;
    const radius = Math.min(pitch / 5, 5.5 * this.surface.scale);
    for (let at = 0; at < count; at += 1) {
      const token = this.model.tokenOf(at);
      if (!this.model.evenStates.includes(this.model.stateOf(at)) || this.model.figures?.tokens === null) continue;
      const top = this.base(Math.floor(at / perRow)) - this.rise(this.shown[at] ?? 0);
      const middle = this.left(at) + pitch / 2;
      drawToken(context, token, middle, Math.max(top - radius - 5, radius + 1), radius);
    }
  }

  /**
   * @private
   * @param {CanvasRenderingContext2D} context
   * @param {number} row
   * @param {number} width
   * @param {number} count
   */
  drawThreshold(context, row, width, count) {
    const { model } = this;
    context.strokeStyle = context.fillStyle = color("--threshold");
    context.lineWidth = 2 * this.surface.scale;
    context.beginPath();
    if (model.weights === null) {
      const threshold = model.figures?.threshold;
      if (threshold === null || threshold === undefined) return;
      const y = Math.round(this.base(row) - this.rise(threshold)) + 0.5;
      context.moveTo(this.start - 4, y);
      context.lineTo(width, y);
      context.font = `600 ${12 * this.surface.scale}px ${color("--font")}`;
      context.textAlign = "right";
      context.fillText(String(threshold), this.start - 8, y + 4 * this.surface.scale);
    } else {
      nameThresholds(context, model, this.surface.scale, this.start - 8, (sessions) => this.base(row) - this.rise(sessions));
      const first = row * this.layout.perRow;
      for (let at = first; at < Math.min(first + this.layout.perRow, count); at += 1) {
        const threshold = model.thresholdOf(at);
        if (threshold === null) continue;
        const y = Math.round(this.base(row) - this.rise(threshold)) + 0.5;
        context.moveTo(this.left(at), y);
        context.lineTo(this.left(at) + this.layout.pitch, y);
      }
    }
    context.stroke();
  }

  /** @private @param {CanvasRenderingContext2D} context */
  drawPointed(context) {
    const { pitch, perRow, height } = this.layout;
    const base = this.base(Math.floor(this.pointed / perRow));
    context.fillStyle = color("--text");
    context.globalAlpha = 0.12;
    context.fillRect(this.left(this.pointed), base - height, pitch, height);
    context.globalAlpha = 1;
  }

  /**
   * Return the pool under the pointer, -1 if there is none.
   *
   * @private
   * @param {MouseEvent} event
   */
  at(event) {
    const { pitch, perRow, height } = this.layout;
    const column = Math.floor((event.offsetX - this.start) / pitch);
    const row = Math.floor(event.offsetY / (height + this.gap));
    const position = row * perRow + column;
    return column >= 0 && column < perRow && position < this.model.names.length ? position : -1;
  }

  /** @private @param {PointerEvent} event */
  point(event) {
    this.pointed = this.at(event);
    this.canvas.classList.toggle("pointing", this.pointed >= 0);
    if (this.pointed < 0) return this.unpoint();
    this.describe();
    const half = this.label.offsetWidth / 2; // it stays inside, however long the name is
    this.label.style.left = `${Math.max(Math.min(event.offsetX, this.surface.width - half), half)}px`;
    this.label.style.top = `${event.offsetY}px`;
    this.surface.invalidate();
  }

  /** @private */
  unpoint() {
    this.pointed = -1;
    this.label.hidden = true;
    this.surface.invalidate();
  }

  /** @private */
  describe() {
    const { model, pointed } = this;
    this.label.hidden = pointed >= model.names.length;
    const sessions = counted(model.sessions[pointed] ?? 0, "session");
    const weight = model.weights === null ? "" : ` · weight ${model.weights[pointed] ?? 1}`;
    setText(this.label, `${model.names[pointed] ?? ""}${weight} · ${sessions} · ${model.stateOf(pointed)}`);
  }
}
