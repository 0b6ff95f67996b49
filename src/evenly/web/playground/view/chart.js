/**
 * The chart over time: one line per policy with its number at the end, and the fluid limit as a dashed line of the
 * same color.
 */

import { color, onColorsChange, textScale } from "../../common/theme.js";
import { COLUMNS } from "../engine/engine.js";
import { laneTitle } from "./state.js";

/** @typedef {"fullest" | "spread" | "threshold" | "messages"} Metric */

/** @type {Record<Metric, {title: string, column: number, fluid: number | null, whole: boolean}>} */
export const METRICS = {
  spread: { title: "Spread of tasks over pools", column: 1, fluid: 5, whole: false },
  fullest: { title: "Tasks in the fullest pool", column: 0, fluid: null, whole: true },
  threshold: { title: "Threshold", column: 2, fluid: 6, whole: true },
  messages: { title: "Messages per task", column: 3, fluid: null, whole: false },
};
const REDRAW_MS = 100;
const PREDICTED = [7, 5]; // dashes; they mean nothing else
const NUMBER = 14; // pixels for the number of a line, beside its end

export class Chart {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.parent = parent;
    /** @type {number[][]} */
    this.rows = [];
    /** @type {import("./state.js").Lane[]} */
    this.lanes = [];
    /** @type {Metric} */
    this.metric = "spread";
    this.now = 0;
    this.drawn = 0;
    /** @type {uPlot | null} */
    this.plot = null;
    this.scale = 1;
    new ResizeObserver(() => this._resize()).observe(parent);
    onColorsChange(() => this.rebuild());
  }

  /** @param {import("./state.js").Lane[]} lanes */
  start(lanes) {
    this.lanes = lanes;
    this.rows = [];
    this.rebuild();
  }

  /** @param {Metric} metric */
  setMetric(metric) {
    this.metric = metric;
    this.rebuild();
  }

  /** @param {import("../engine/engine.js").Frame} frame */
  show(frame) {
    if (frame.keep !== Infinity) this.rows = this.rows.filter((row) => row[0] <= frame.keep);
    this.rows.push(...frame.rows);
    this.now = frame.time;
    const wait = performance.now() - this.drawn;
    if (wait < REDRAW_MS && frame.keep === Infinity) return;
    this.redraw();
  }

  redraw() {
    this.drawn = performance.now();
    this.plot?.setData(this._data());
  }

  rebuild() {
    this.plot?.destroy();
    const { whole } = METRICS[this.metric];
    const shown = this._shown();
    /** @type {uPlot.Series[]} */
    const series = shown.map(({ lane, fluid }) => ({
      label: `${laneTitle(this.lanes[lane])}${fluid ? ", predicted" : ""}`,
      stroke: color(`--series-${lane + 1}`),
      width: fluid ? 1.5 : 2,
      dash: fluid ? PREDICTED : [],
      points: { show: false },
      ...(whole ? { paths: /** @type {any} */ (uPlot.paths.stepped)({ align: 1 }) } : {}),
    }));
    this.scale = textScale();
    const font = `${12 * this.scale}px system-ui, sans-serif`;
    const axis = { font, stroke: color("--text-soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    const { clientWidth, clientHeight } = this.parent;
    this.plot = new uPlot(
      {
        width: Math.max(clientWidth, 50),
        height: Math.max(clientHeight, 50),
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false },
          y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, whole ? 2 : 0.5)] },
        },
        axes: [
          { ...axis, values: (_plot, ticks) => ticks.map(String), size: 30 * this.scale, space: 50 * this.scale },
          { ...axis, values: (_plot, ticks) => ticks.map((tick) => String(Math.round(tick * 100) / 100)), size: 40 * this.scale, space: 30 * this.scale },
        ],
        series: [{}, ...series],
        padding: [null, this.lanes.length > 1 ? NUMBER * this.scale : null, null, null],
        hooks: { draw: [(plot) => this._markNow(plot), (plot) => this._numberLines(plot)] },
      },
      this._data(),
      this.parent,
    );
  }

  /** The chart as a canvas, to be copied into a picture. */
  get canvas() {
    return this.parent.querySelector("canvas");
  }

  _shown() {
    const { fluid, column } = METRICS[this.metric];
    return this.lanes.flatMap((lane, index) => {
      if (column === 2 && lane.policy !== "threshold") return [];
      const own = { lane: index, fluid: false, column };
      return fluid === null ? [own] : [own, { lane: index, fluid: true, column: fluid }];
    });
  }

  /** @returns {uPlot.AlignedData} */
  _data() {
    const columns = this._shown().map(({ lane, column }) =>
      this.rows.map((row) => (Number.isNaN(row[1 + lane * COLUMNS + column]) ? null : row[1 + lane * COLUMNS + column])),
    );
    return [this.rows.map((row) => row[0]), ...columns];
  }

  /** @param {uPlot} plot */
  _markNow(plot) {
    const x = plot.valToPos(this.now, "x", true);
    const { left, top, width, height } = plot.bbox;
    if (x < left || x > left + width) return;
    plot.ctx.save();
    plot.ctx.strokeStyle = color("--text");
    plot.ctx.setLineDash([]); // the last line may be a prediction
    plot.ctx.lineWidth = window.devicePixelRatio || 1;
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, top);
    plot.ctx.lineTo(x, top + height);
    plot.ctx.stroke();
    plot.ctx.restore();
  }

  /**
   * Write the number of each policy beside the end of its line, for readers who cannot tell the colors apart.
   * @param {uPlot} plot
   */
  _numberLines(plot) {
    if (this.lanes.length < 2) return;
    const ratio = window.devicePixelRatio || 1;
    const ends = this._shown().flatMap(({ lane, fluid }, index) => {
      const known = [...plot.data[index + 1]].filter((value) => typeof value === "number");
      return fluid || known.length === 0 ? [] : [{ lane, y: plot.valToPos(known[known.length - 1], "y", true) }];
    });
    ends.sort((a, b) => a.y - b.y);
    ends.forEach((end, index) => {
      if (index > 0) end.y = Math.max(end.y, ends[index - 1].y + 12 * this.scale * ratio); // lines may coincide
    });
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = color("--text");
    ctx.font = `600 ${12 * this.scale * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    for (const { lane, y } of ends) ctx.fillText(String(lane + 1), bbox.left + bbox.width + 4 * ratio, y);
    ctx.restore();
  }

  _resize() {
    const { clientWidth: width, clientHeight: height } = this.parent;
    if (this.plot !== null && this.scale !== textScale()) this.rebuild(); // uPlot cannot change the size of its text
    else if (width > 0 && height > 0) this.plot?.setSize({ width, height });
  }
}
