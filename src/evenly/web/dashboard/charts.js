// The last hour, in four charts that share their time axis. uPlot draws them.

import { make, setText } from "../common/dom.js";
import { clock, number } from "../common/format.js";
import { color, onColorsChange, textScale } from "../common/theme.js";

const HOUR = 3600;
const LEAST = 10; // seconds shown, at least
const HEIGHT = 150; // until CSS says more
const WHOLE = [0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
const LEAST_TOP = 0.1; // of an axis: a line at 0 needs no finer scale
const MINUTE = 12; // points
const SAME_S = 0.25; // a point as young as this is the one of now
const GAP_S = 20; // a longer pause between two points is drawn as a gap

/** @typedef {import("./model.js").Model} Model */
/** @typedef {(number | null)[]} Column */

/**
 * @typedef {object} Plan
 * @property {string} title
 * @property {string} note
 * @property {string} color
 * @property {boolean} [stepped] whether the line has steps
 * @property {boolean} [whole] whether all values are whole numbers
 * @property {(model: Model) => Column} values of the history
 * @property {(model: Model) => number | null} now the same value as the tile, so that both agree at any moment
 */

/** @type {Plan[]} */
const PLANS = [
  {
    title: "Sessions",
    note: "open",
    color: "--series-1",
    whole: true,
    values: (model) => pick(model, 1),
    now: (model) => model.figures?.sessions ?? null,
  },
  {
    title: "Starts per second",
    note: "new sessions",
    color: "--series-3",
    values: rates,
    now: (model) => model.startsPerSecond(),
  },
  {
    title: "Threshold",
    note: "as learned",
    color: "--threshold",
    stepped: true,
    whole: true,
    values: (model) => pick(model, 3),
    now: (model) => model.figures?.threshold ?? null,
  },
  {
    title: "Spread",
    note: "mean of a minute",
    color: "--series-1",
    values: (model) => smooth(pick(model, 4)),
    now: (model) => model.meanSpread(),
  },
];

/** All charts. */
export class Charts {
  /**
   * @param {HTMLElement} parent
   * @param {Model} model
   */
  constructor(parent, model) {
    this.model = model;
    /** @private @type {Chart[]} */
    this.charts = PLANS.map((plan) => new Chart(parent, plan));
    onColorsChange(() => this.charts.forEach((chart) => chart.recolor()));
  }

  update() {
    for (const chart of this.charts) chart.show(this.model);
  }
}

class Chart {
  /**
   * @param {HTMLElement} parent
   * @param {Plan} plan
   */
  constructor(parent, plan) {
    this.plan = plan;
    this.now = make("span", { class: "chart-now" });
    this.box = make("div", { class: "chart", role: "img" });
    parent.append(
      make(
        "figure",
        { class: "card" },
        make("figcaption", {}, make("h2", { text: plan.title }), this.now, make("p", { class: "soft", text: plan.note })),
        this.box,
      ),
    );
    this.scale = textScale();
    this.plot = new uPlot(this.options(), [[], []], this.box);
    new ResizeObserver(() => this.resize()).observe(this.box);
  }

  /** @private */
  resize() {
    if (this.scale === textScale()) {
      this.plot.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
      return;
    }
    this.scale = textScale(); // uPlot cannot change the size of its text
    const { data, scales } = this.plot;
    this.plot.destroy();
    this.plot = new uPlot(this.options(), data, this.box);
    if (scales["x"]?.min != null && scales["x"].max != null) this.plot.setScale("x", { min: scales["x"].min, max: scales["x"].max });
  }

  /** @param {Model} model */
  show(model) {
    const times = pick(model, 0).map((time) => time ?? 0);
    const place = (times.at(-1) ?? 0) > model.time - SAME_S ? -1 : times.length;
    times.splice(place, 1, model.time);
    const column = this.plan.values(model);
    column.splice(place, 1, this.plan.now(model));
    this.plot.setData([times, withGaps(times, column)], false);
    const since = Math.min(times[0] ?? model.time, model.time - LEAST); // no empty time before the first point
    this.plot.setScale("x", { min: Math.max(since, model.time - HOUR), max: model.time });
    const values = column.filter((value) => value !== null);
    const last = values.at(-1);
    this.read(this.plot);
    const words =
      values.length === 0
        ? "no values yet"
        : `now ${number(last)}, lowest ${number(Math.min(...values))}, highest ${number(Math.max(...values))}`;
    this.box.setAttribute("aria-label", `${this.plan.title} over the last hour: ${words}.`);
  }

  recolor() {
    this.plot.redraw(false, true);
  }

  /** @private @returns {uPlot.Options} */
  options() {
    const soft = () => color("--text-soft");
    const grid = { stroke: () => color("--line"), width: 1 };
    const { scale } = this;
    const font = `${12 * scale}px system-ui, sans-serif`;
    const axis = { stroke: soft, grid, ticks: { show: false }, font };
    return {
      width: this.box.clientWidth || 300,
      height: this.box.clientHeight || HEIGHT,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: "hour" }, drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: true }, y: { range: (_plot, low, high) => range(low, high) } },
      axes: [
        { ...axis, size: 24 * scale, space: 70 * scale, values: (_plot, splits, _axis, _space, step) => splits.map((at) => clock(at).slice(0, step < 60 ? 8 : 5)) },
        { ...axis, size: 44 * scale, space: 34 * scale, ...(this.plan.whole === true ? { incrs: WHOLE } : {}), values: (_plot, splits) => splits.map((at) => number(at)) },
      ],
      series: [
        {},
        {
          stroke: () => color(this.plan.color),
          width: 1.75,
          points: { show: false },
          ...(this.plan.stepped === true ? steps() : {}),
        },
      ],
      hooks: { setCursor: [(plot) => this.read(plot)] },
    };
  }

  /** @private @param {uPlot} plot */
  read(plot) {
    const at = plot.cursor.idx;
    const time = at === null || at === undefined ? undefined : plot.data[0]?.[at];
    if (time === undefined || plot.cursor.left === undefined || plot.cursor.left < 0) {
      setText(this.now, number(plot.data[1]?.at(-1)));
    } else {
      setText(this.now, `${clock(time)}: ${number(at == null ? undefined : plot.data[1]?.[at])}`);
    }
  }
}

/** @returns {{ paths?: uPlot.Series.PathBuilder }} */
function steps() {
  const stepped = uPlot.paths.stepped;
  return stepped === undefined ? {} : { paths: stepped({ align: 1 }) };
}

/**
 * @param {number | null} low
 * @param {number | null} high
 * @returns {[number, number]}
 */
function range(low, high) {
  const top = Math.max(high ?? 1, LEAST_TOP);
  const bottom = Math.min(low ?? 0, top);
  const floor = bottom > 0.6 * top ? Math.max(0, bottom - (top - bottom) - 0.05 * top) : 0;
  return [floor, top + Math.max((top - floor) * 0.12, 1e-6)];
}

/**
 * @param {Model} model
 * @param {number} column
 * @returns {Column}
 */
function pick(model, column) {
  return model.history.map((row) => row[column] ?? null);
}

/** @param {Model} model @returns {Column} */
function rates(model) {
  return model.history.map((row, at) => {
    const before = model.history[at - 1];
    const seconds = (row[0] ?? 0) - (before?.[0] ?? 0);
    if (before === undefined || seconds <= 0 || seconds > GAP_S) return null;
    return Math.max(((row[2] ?? 0) - (before[2] ?? 0)) / seconds, 0);
  });
}

/**
 * Return the means over the last minute.
 *
 * @param {Column} column
 * @returns {Column}
 */
function smooth(column) {
  return column.map((_, at) => {
    const minute = column.slice(Math.max(at + 1 - MINUTE, 0), at + 1);
    return minute.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0) / minute.length;
  });
}

/**
 * Leave out the last value before a pause, so that no line is drawn across it.
 *
 * @param {number[]} times
 * @param {Column} column
 * @returns {Column}
 */
function withGaps(times, column) {
  return column.map((value, at) => ((times[at + 1] ?? 0) - (times[at] ?? 0) > GAP_S ? null : value));
}
