/** One lane of the stage: a canvas that shows a system, and takes the pointer and the keyboard. */

import { Surface } from "../../common/canvas.js";
import { make, setText } from "../../common/dom.js";
import { prefersStillness } from "../../common/theme.js";
import { exactly } from "../theory/equilibrium.js";
import { predict } from "../theory/predict.js";
import { Flights } from "./flights.js";
import { canvasPainter } from "./painter.js";
import { drawStage, geometry, shownTasks } from "./stage.js";
import { hasTokens, laneTitle } from "./state.js";

/**
 * @typedef {object} LaneEvents
 * @property {(lane: number, threshold: number) => void} setThreshold
 * @property {(lane: number, pool: number) => void} togglePool
 * @property {boolean} kills whether pools can be killed here
 * @property {(sentence: string) => void} say
 */

const GRAB = 14; // pixels from the threshold line in which it can be taken

export class LaneView {
  /**
   * @param {number} index
   * @param {import("../sim/base.js").Spec} spec
   * @param {LaneEvents} events
   */
  constructor(index, spec, events) {
    this.index = index;
    this.spec = spec;
    this.events = events;
    this.hasThreshold = spec.policy === "threshold";
    this.flights = new Flights(spec.pools);
    /** @type {import("../engine/engine.js").LaneFrame | null} */
    this.frame = null;
    this.time = 0;
    this.levels = 4;
    this.selected = -1;
    /** @type {number | null} */
    this.dragged = null;
    /** @type {import("../theory/predict.js").Predictions | null} */
    this.predictions = null;
    this.fullest = make("span", { class: "fact" });
    this.canvas = make("canvas", {
      class: "stage",
      tabindex: 0,
      role: "application",
      "aria-label": `${laneTitle(spec)}: ${spec.pools} pools`,
      "aria-describedby": "stage-help",
      ...(events.kills ? { title: "Click a column to kill the pool, or to revive it" } : {}),
    });
    this.element = make(
      "section",
      { class: "lane card" },
      make(
        "header",
        { class: "lane-head" },
        make("span", { class: `swatch series-${index + 1}`, "aria-hidden": "true" }),
        make("b", { class: "lane-number", text: String(index + 1) }),
        make("h3", { text: laneTitle(spec) }),
        this.fullest,
      ),
      this.canvas,
    );
    this.surface = new Surface(this.canvas, (context, width, height, now) => this._draw(context, width, height, now));
    this._listen();
  }

  /**
   * The rows that a frame needs.
   * @param {import("../engine/engine.js").LaneFrame} frame
   */
  wanted(frame) {
    const most = frame.tasks.reduce((top, tasks) => Math.max(top, tasks), 0);
    return Math.max(most, Math.ceil(frame.loadPerPool), this.hasThreshold ? frame.threshold + 1 : 0) + 2;
  }

  /**
   * @param {import("../engine/engine.js").LaneFrame} frame
   * @param {{time: number, jumped: boolean, disturbed: boolean, wanted: number}} about time, whether it jumped there,
   *   whether something was changed, and the rows that the lanes need, all of them
   */
  show(frame, { time, jumped, disturbed, wanted }) {
    this.frame = frame;
    this.time = time;
    const undisturbed = this.spec.initial === 0 && this.spec.threshold === 0 && !disturbed;
    const alive = frame.tasks.reduce((sum, tasks) => sum + (tasks >= 0 ? 1 : 0), 0);
    this.predictions = predict(this.spec, frame.loadPerPool, frame.threshold, alive, undisturbed);
    // Grow at once, shrink late: a stage that keeps changing its scale cannot be read.
    if (wanted > this.levels || wanted < this.levels - 4 || jumped) this.levels = wanted;
    if (jumped) this.flights.clear();
    else if (!prefersStillness()) this.flights.add(frame, performance.now(), 1000 / 60);
    this.surface.invalidate();
  }

  /** What `drawStage` needs; without flights for a picture to keep. @param {boolean} still */
  look(still) {
    const frame = /** @type {import("../engine/engine.js").LaneFrame} */ (this.frame);
    return {
      frame,
      flights: still ? null : this.flights,
      hasTokens: hasTokens(this.spec),
      hasThreshold: this.hasThreshold,
      levels: this.levels,
      selected: still ? -1 : this.selected,
      focused: document.activeElement === this.canvas,
      dragged: this.dragged,
      time: this.time,
      settled: this.predictions?.occupancy ? exactly(this.predictions.occupancy) : null,
    };
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   * @param {number} now
   */
  _draw(context, width, height, now) {
    if (this.frame === null) return false;
    const flying = this.flights.land(now, this.time);
    const look = this.look(false);
    drawStage(canvasPainter(context), this._geometry(width, height), look);
    setText(this.fullest, `fullest ${Math.max(...shownTasks(look))}`); // of what is drawn: what flies has not landed
    return flying && this.spec.delay === 0;
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  _geometry(width, height) {
    return geometry(width, height, this.spec.pools, this.levels, this.surface.scale);
  }

  _listen() {
    const { canvas } = this;
    canvas.addEventListener("keydown", (event) => this._key(event));
    canvas.addEventListener("focus", () => this.surface.invalidate());
    canvas.addEventListener("blur", () => {
      this.selected = -1;
      this.surface.invalidate();
    });
    canvas.addEventListener("pointerdown", (event) => this._down(event));
    canvas.addEventListener("pointermove", (event) => this._move(event));
    canvas.addEventListener("pointerup", (event) => this._up(event));
    // A finger on the line drags it; elsewhere it scrolls the page.
    canvas.addEventListener(
      "touchstart",
      (event) => {
        if (this._at(event.touches[0]).onLine) event.preventDefault();
      },
      { passive: false },
    );
    canvas.addEventListener("pointercancel", () => {
      this.dragged = null;
    });
    canvas.addEventListener("pointerleave", () => {
      if (document.activeElement !== canvas) this.selected = -1;
      this.surface.invalidate();
    });
  }

  /** @param {{clientX: number, clientY: number}} event */
  _at(event) {
    const box = this.canvas.getBoundingClientRect();
    const g = this._geometry(box.width, box.height);
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const line = g.y(Math.min(this.frame?.threshold ?? 0, this.levels));
    const pool = x < g.left + g.columns && y > g.top ? g.poolAt(x) : -1;
    const level = Math.min(Math.max(Math.round(g.levelAt(y)), 0), this.levels);
    return { pool, level, onLine: this.hasThreshold && Math.abs(y - line) < GRAB && x >= g.left };
  }

  /** @param {PointerEvent} event */
  _down(event) {
    const { onLine, level } = this._at(event);
    if (!onLine) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.dragged = level;
    event.preventDefault();
  }

  /** @param {PointerEvent} event */
  _move(event) {
    const { pool, level, onLine } = this._at(event);
    if (this.dragged !== null) {
      if (level !== this.dragged) this.events.setThreshold(this.index, level);
      this.dragged = level;
    } else {
      if (this.events.kills) this.selected = onLine || pool >= this.spec.pools ? -1 : pool;
      this.canvas.classList.toggle("aim", this.events.kills && this.selected >= 0);
      this.canvas.classList.toggle("grab", onLine);
    }
    this.surface.invalidate();
  }

  /** @param {PointerEvent} event */
  _up(event) {
    if (this.dragged !== null) {
      this.events.setThreshold(this.index, this.dragged);
      this.dragged = null;
      return;
    }
    const { pool, onLine } = this._at(event);
    if (this.events.kills && !onLine && pool >= 0 && pool < this.spec.pools) this.events.togglePool(this.index, pool);
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const { pools } = this.spec;
    const threshold = this.frame?.threshold ?? 0;
    const steps = /** @type {Record<string, number>} */ ({ ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 });
    if (event.key in steps) this._select(Math.min(Math.max(this.selected + steps[event.key], 0), pools - 1));
    else if (event.key === "Home") this._select(0);
    else if (event.key === "End") this._select(pools - 1);
    else if (event.key === "ArrowUp" && this.hasThreshold) this.events.setThreshold(this.index, threshold + 1);
    else if (event.key === "ArrowDown" && this.hasThreshold) this.events.setThreshold(this.index, Math.max(threshold - 1, 0));
    else if (event.key === "Enter" && this.events.kills && this.selected >= 0) this.events.togglePool(this.index, this.selected);
    else return;
    event.preventDefault();
  }

  /** @param {number} pool */
  _select(pool) {
    this.selected = pool;
    const tasks = this.frame?.tasks[pool] ?? 0;
    const token = ["no token", "yellow token", "green token"][this.frame?.tokens[pool] ?? 0];
    const state = tasks < 0 ? "killed" : `${tasks} tasks${this.hasThreshold ? `, ${token}` : ""}`;
    this.events.say(`Pool ${pool + 1}: ${state}.`);
    this.surface.invalidate();
  }
}
