/** The table of numbers: averages of each policy, next to what theory predicts. */

import { make, setText } from "../../common/dom.js";
import { number } from "../../common/format.js";
import { laneTitle } from "./state.js";

/** @typedef {{frame: import("../engine/engine.js").LaneFrame, predictions: import("../theory/predict.js").Predictions}} Column */

/**
 * What the table shows: name, measured value and prediction. Null leaves a cell empty.
 * @type {[string, (column: Column) => string | null, (column: Column) => string | null][]}
 */
const ROWS = [
  ["Tasks per pool", ({ frame }) => mean(frame.averages.mean_tasks), ({ frame }) => number(frame.loadPerPool)],
  ["Fullest pool", ({ frame }) => mean(frame.averages.max_tasks.mean), ({ predictions }) => predictions.fullest],
  [
    "Spread",
    ({ frame }) => mean(frame.averages.spread.mean),
    ({ predictions }) => (predictions.spread === null ? null : mean(predictions.spread)),
  ],
  ["Messages per task", ({ frame }) => mean(frame.averages.messages.per_task), ({ predictions }) => predictions.messages],
  [
    "Threshold",
    ({ frame }) => (frame.averages.threshold === null ? null : mean(frame.averages.threshold.mean)),
    ({ predictions }) => predictions.threshold,
  ],
];

/** @param {number} value */
function mean(value) {
  return Number.isFinite(value) ? value.toFixed(3) : "–";
}

export class Numbers {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.parent = parent;
    /** @type {{measured: HTMLElement, predicted: HTMLElement}[][]} */
    this.cells = [];
  }

  /** @param {import("./state.js").Lane[]} lanes */
  start(lanes) {
    this.cells = ROWS.map(() => lanes.map(() => ({ measured: make("span", { class: "measured" }), predicted: make("span", { class: "predicted" }) })));
    const head = make("tr", {}, make("th", { scope: "col", text: "Average" }));
    lanes.forEach((lane, index) => {
      head.append(
        make(
          "th",
          { scope: "col" },
          make("span", { class: `swatch series-${index + 1}`, "aria-hidden": "true" }),
          `${lanes.length > 1 ? `${index + 1} ` : ""}${laneTitle(lane)}`,
        ),
      );
    });
    const rows = ROWS.map(([name], row) =>
      make(
        "tr",
        { hidden: name === "Threshold" && !lanes.some((lane) => lane.policy === "threshold") },
        make("th", { scope: "row", text: name }),
        ...this.cells[row].map(({ measured, predicted }) => make("td", {}, measured, predicted)),
      ),
    );
    this.parent.replaceChildren(make("table", { class: "numbers" }, make("thead", {}, head), make("tbody", {}, ...rows)));
  }

  /**
   * @param {Column[]} columns
   * @param {boolean} settled the averages leave out the time in which the system settles
   */
  show(columns, settled) {
    this.parent.classList.toggle("unsettled", !settled);
    ROWS.forEach(([, measured, predicted], row) => {
      columns.forEach((column, index) => {
        const cell = this.cells[row]?.[index];
        if (cell === undefined) return;
        setText(cell.measured, measured(column) ?? "");
        const words = measured(column) === null ? null : predicted(column);
        setText(cell.predicted, words === null ? "" : `predicted${settled ? "" : ", once settled:"} ${words}`);
      });
    });
  }
}
