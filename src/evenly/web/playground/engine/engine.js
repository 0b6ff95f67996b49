/**
 * Runs two to four systems side by side on the same arrivals, and keeps what is needed to go back in time.
 *
 * It answers requests with frames, so that it can run in a worker or in the page itself. All systems share the seed:
 * the times of arrivals and departures are the same, because they depend on the total number of tasks only.
 */

import { Fluid } from "../theory/fluid.js";
import { spreadOf } from "../theory/equilibrium.js";
import { copied, newSystem } from "../sim/system.js";

/** @typedef {import("../sim/base.js").Spec} Spec */
/** @typedef {import("../sim/base.js").Action & {time: number, lane: number}} TimedAction lane -1: all of them */

/**
 * @typedef {{type: "start", specs: Spec[], actions: TimedAction[]}
 *   | {type: "advance", until: number, milliseconds: number}
 *   | {type: "seek", time: number}
 *   | {type: "step"}
 *   | {type: "act", action: {type: TimedAction["type"], value: number, lane: number}, settle?: number}} Request
 */

/**
 * @typedef {object} LaneFrame
 * @property {Int16Array} tasks of each pool; -1 for a pool that was killed
 * @property {Uint8Array} tokens that the dispatcher holds: 2 green, 1 yellow
 * @property {number} threshold
 * @property {number} load per pool of time 0
 * @property {number} loadPerPool per pool that is left
 * @property {number[]} traffic kind, pool, time sent and time due, one after the other
 * @property {number} skipped tasks and messages that are not in `traffic`
 * @property {import("../sim/ledger.js").Averages} averages
 * @property {number} spread
 * @property {{q: number[], threshold: number} | null} fluid
 */

/**
 * One point of the charts: time, and for each lane the fullest pool, spread, threshold, messages per task, tasks per
 * pool, and the fluid limit's spread and threshold.
 * @typedef {number[]} Row
 */

/**
 * @typedef {object} Frame
 * @property {number} run number of the start that it belongs to
 * @property {number} time
 * @property {LaneFrame[]} lanes
 * @property {Row[]} rows new points of the charts
 * @property {number} keep chart points up to this time stay valid
 * @property {TimedAction[]} actions
 */

export const COLUMNS = 7; // of each lane in a row
const GRID = 1 / 16; // time between two points of the charts
const MOST_TRAFFIC = 300; // tasks and messages of a lane in a frame
const MOST_CHECKPOINTS = 48;
export const MOST_ACTIONS = 400; // in an address

/** @typedef {{time: number, done: number, lanes: import("../sim/system.js").System[], fluids: (Fluid | null)[]}} Checkpoint */

export class Engine {
  constructor() {
    this.run = 0;
    this.time = 0;
    /** @type {import("../sim/system.js").System[]} */
    this.lanes = [];
    /** @type {(Fluid | null)[]} */
    this.fluids = [];
    /** @type {TimedAction[]} */
    this.actions = [];
    this.done = 0; // actions so far
    /** @type {Checkpoint[]} */
    this.checkpoints = [];
    this.spacing = 1;
    this.sampled = -1; // last point of the grid that was sent
    this.keep = Infinity;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {{list: number[], skipped: number}[]} */
    this.traffic = [];
  }

  /**
   * @param {Request} request
   * @returns {Frame}
   */
  handle(request) {
    if (request.type === "start") this._start(request.specs, request.actions);
    else if (request.type === "advance") this._advance(request.until, request.milliseconds);
    else if (request.type === "seek") this._seek(request.time);
    else if (request.type === "step") this._advance(Math.min(...this.lanes.map((lane) => lane.nextTime)), Infinity);
    else this._act({ ...request.action, time: this.time }, request.settle ?? 0);
    return this._frame();
  }

  /**
   * @param {Spec[]} specs
   * @param {TimedAction[]} actions
   */
  _start(specs, actions) {
    this.run += 1;
    this.time = 0;
    this.lanes = specs.map(newSystem);
    this.fluids = specs.map((spec) => (Fluid.knows(spec) ? new Fluid(spec) : null));
    this.actions = [...actions].sort((a, b) => a.time - b.time);
    this.done = 0;
    this.checkpoints = [];
    this.spacing = 1;
    this.sampled = -1;
    this.keep = -1;
    this.rows = [];
    this._listen();
    this._sample();
    this._remember();
  }

  /**
   * @param {number} until
   * @param {number} milliseconds stop after about this long, wherever that is
   */
  _advance(until, milliseconds) {
    const started = performance.now();
    while (this.time < until) {
      const grid = (Math.floor(this.time / GRID) + 1) * GRID;
      const action = this.done < this.actions.length ? this.actions[this.done].time : Infinity;
      const stop = Math.min(until, grid, Math.max(action, this.time));
      for (const lane of this.lanes) lane.advance(stop, Infinity);
      this.fluids.forEach((fluid) => fluid?.advance(stop));
      this.time = stop;
      if (stop === grid) this._sample(); // before what is done at this time, as it was when a visitor did it
      while (this.done < this.actions.length && this.actions[this.done].time <= this.time) {
        this._apply(this.actions[this.done]);
        this.done += 1;
      }
      if (stop === grid && Math.round(grid / GRID) % Math.round(this.spacing / GRID) === 0) this._remember();
      if (performance.now() - started > milliseconds) break;
    }
  }

  /** @param {number} time */
  _seek(time) {
    let index = this.checkpoints.length - 1;
    while (index > 0 && this.checkpoints[index].time > time) index -= 1;
    const from = this.checkpoints[index];
    if (time < this.time || from.time > this.time) {
      this.time = from.time;
      this.done = from.done;
      this.lanes = from.lanes.map((lane) => copied(lane));
      this.fluids = from.fluids.map((fluid) => copied(fluid));
      this._listen();
    }
    this._advance(time, Infinity);
    this._listen(); // nothing flies that belongs to the time before
  }

  /**
   * Do something now. What was going to be done later is forgotten, except for the start of averages.
   * @param {TimedAction} action
   * @param {number} settle start the averages anew after this time; 0 leaves them alone
   */
  _act(action, settle) {
    const affects = this.lanes.some((lane, index) => concerns(action, index) && lane.accepts(action));
    const later = this.actions.slice(this.done).filter((each) => each.type === "average");
    if (!affects || this.done + later.length >= MOST_ACTIONS) return;
    const anew = settle > 0 && this.done + 1 < MOST_ACTIONS;
    if (anew) later.splice(0, Infinity, { type: "average", time: Math.round((this.time + settle) * 1000) / 1000, value: 0, lane: -1 });
    this.actions = [...this.actions.slice(0, this.done), action, ...later];
    this.done += 1;
    this.checkpoints = this.checkpoints.filter((each) => each.time <= this.time);
    this.sampled = Math.min(this.sampled, Math.floor(this.time / GRID));
    this.keep = this.time;
    this._apply(action);
  }

  /** @param {TimedAction} action */
  _apply(action) {
    this.lanes.forEach((lane, index) => {
      if (!concerns(action, index)) return;
      lane.apply(action);
      const fluid = this.fluids[index];
      if (fluid === null) return;
      fluid.load = (lane.load * lane.spec.pools) / lane.ranked.count;
      if (action.type === "threshold") fluid.threshold = action.value;
    });
  }

  _sample() {
    const index = Math.round(this.time / GRID);
    if (index <= this.sampled) return;
    this.sampled = index;
    const row = [this.time];
    this.lanes.forEach((lane, place) => {
      const { ledger } = lane;
      const fluid = this.fluids[place];
      const sent = lane.averages().messages.per_task;
      row.push(ledger.maxLevel, ledger.spread, ledger.threshold, sent, ledger.total / ledger.pools);
      row.push(fluid === null ? NaN : spreadOf([...fluid.q]), fluid === null ? NaN : fluid.threshold);
    });
    this.rows.push(row);
  }

  _remember() {
    const last = this.checkpoints[this.checkpoints.length - 1];
    if (last !== undefined && last.time >= this.time) return;
    this.checkpoints.push({
      time: this.time,
      done: this.done,
      lanes: this.lanes.map((lane) => copied(lane)),
      fluids: this.fluids.map((fluid) => copied(fluid)),
    });
    if (this.checkpoints.length < MOST_CHECKPOINTS) return;
    this.spacing *= 2;
    this.checkpoints = this.checkpoints.filter((each, index) => index === 0 || each.time % this.spacing === 0);
  }

  _listen() {
    this.traffic = this.lanes.map(() => ({ list: [], skipped: 0 }));
    this.lanes.forEach((lane, index) => {
      lane.watch((kind, pool, sent, due) => {
        const heard = this.traffic[index];
        if (heard.list.length < 4 * MOST_TRAFFIC) heard.list.push(kind, pool, sent, due);
        else heard.skipped += 1;
      });
    });
  }

  /** @returns {Frame} */
  _frame() {
    const { rows, keep } = this;
    this.rows = [];
    this.keep = Infinity;
    const lanes = this.lanes.map((lane, index) => this._laneFrame(lane, index));
    return { run: this.run, time: this.time, lanes, rows, keep, actions: this.actions };
  }

  /**
   * @param {import("../sim/system.js").System} lane
   * @param {number} index
   * @returns {LaneFrame}
   */
  _laneFrame(lane, index) {
    const { pools } = lane.spec;
    const tasks = new Int16Array(pools);
    const tokens = new Uint8Array(pools);
    for (let pool = 0; pool < pools; pool += 1) {
      tasks[pool] = lane.alive[pool] ? lane.tasksOf(pool) : -1;
      tokens[pool] = lane.token(pool);
    }
    const { list, skipped } = this.traffic[index];
    this.traffic[index] = { list: [], skipped: 0 };
    const fluid = this.fluids[index];
    return {
      tasks,
      tokens,
      threshold: lane.threshold,
      load: lane.load,
      loadPerPool: lane.ledger.load,
      traffic: list,
      skipped,
      averages: lane.averages(),
      spread: lane.ledger.spread,
      fluid: fluid === null ? null : { q: [...fluid.q], threshold: fluid.threshold },
    };
  }
}

/**
 * @param {TimedAction} action
 * @param {number} lane
 */
function concerns(action, lane) {
  return action.lane < 0 || action.lane === lane;
}
