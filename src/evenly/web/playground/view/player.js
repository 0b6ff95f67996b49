/** Plays a run: asks the engine for one frame at a time, as fast as the speed wants and the screen can show. */

/** @typedef {import("../engine/engine.js").Frame} Frame */
/** @typedef {import("./state.js").State} State */

import { LIMITS, specsOf } from "./state.js";

const BUSY_MS = 12; // of a frame that the engine may use
const HASTE = 1; // mean task times per second, at least, while the columns fill up
const LONGEST_MS = 100; // a page that was in the background does not catch up

export class Player {
  /**
   * @param {import("../engine/client.js").EngineClient} client
   * @param {State} state
   * @param {(frame: Frame, jumped: boolean) => void} show
   * @param {() => void} changed when it starts or stops
   * @param {(busy: boolean) => void} tellBusy when it works on something that was asked for
   */
  constructor(client, state, show, changed, tellBusy) {
    this.client = client;
    this.state = state;
    this.show = show;
    this.changed = changed;
    this.tellBusy = tellBusy;
    this.playing = false;
    this.time = 0;
    this.furthest = 0;
    this.last = 0;
    this.hurryUntil = 0; // simulated time
    /** @type {(() => Promise<void>)[]} */
    this.queue = [];
    this.working = false;
    this.run = 0; // frames of earlier runs are too late
    this.loop = (/** @type {number} */ now) => this._tick(now);
  }

  /** Begin anew, and go to the time of the state. */
  restart() {
    const { time, actions } = this.state;
    const specs = specsOf(this.state);
    this.furthest = 0;
    this.hurryUntil = 0;
    this.run += 1;
    return this._ask(true, async () => {
      const first = await this.client.ask({ type: "start", specs, actions });
      return time > 0 ? this._far(time, first) : first;
    });
  }

  play() {
    if (this.playing || this.time >= LIMITS.time[1]) return;
    this.playing = true;
    this.tellBusy(false);
    this.last = performance.now();
    requestAnimationFrame(this.loop);
    this.changed();
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.changed();
  }

  step() {
    this.pause();
    return this._ask(false, () => this.client.ask({ type: "step" }));
  }

  /** @param {number} time */
  seek(time) {
    this.pause();
    this.hurryUntil = 0;
    return this._ask(true, () => this.client.ask({ type: "seek", time }));
  }

  /**
   * @param {{type: import("./state.js").TimedAction["type"], value: number, lane: number}} action
   * @param {number} settle time after which averages start anew; 0 for never
   */
  act(action, settle) {
    return this._ask(false, async () => {
      const frame = await this.client.ask({ type: "act", action, settle });
      this.furthest = Math.min(this.furthest, frame.time);
      return frame;
    });
  }

  /**
   * Do something once all requests so far are answered.
   * @param {() => void} work
   */
  after(work) {
    void this._do(async () => work());
  }

  /**
   * Go to a time that was never reached, in parts that keep the page alive.
   * @param {number} time
   * @param {Frame} first
   */
  async _far(time, first) {
    let frame = first;
    const rows = [...first.rows];
    while (frame.time < time) {
      frame = await this.client.ask({ type: "advance", until: time, milliseconds: 200 });
      rows.push(...frame.rows);
    }
    for (const lane of frame.lanes) lane.traffic = [];
    return { ...frame, rows, keep: first.keep };
  }

  /** @param {number} now */
  _tick(now) {
    if (!this.playing) return;
    requestAnimationFrame(this.loop);
    if (this.working) return;
    const passed = Math.min(now - this.last, LONGEST_MS);
    this.last = now;
    // Whole thousandths, so that a command with this horizon is short.
    const speed = this.time < this.hurryUntil ? Math.max(this.state.speed, HASTE) : this.state.speed;
    const target = Math.round((this.time + (passed / 1000) * speed) * 1000) / 1000;
    const until = Math.min(Math.max(target, this.time + 0.001), LIMITS.time[1]);
    void this._ask(false, () => this.client.ask({ type: "advance", until, milliseconds: BUSY_MS })).then(() => {
      if (this.time >= LIMITS.time[1]) this.pause();
    });
  }

  /**
   * Ask for a frame and show it, unless another run has begun meanwhile.
   * @param {boolean} jumped
   * @param {() => Promise<Frame>} ask
   */
  _ask(jumped, ask) {
    const { run } = this;
    return this._do(async () => {
      if (run !== this.run) return;
      const frame = await ask();
      if (run === this.run) this._take(frame, jumped);
    });
  }

  /**
   * @param {Frame} frame
   * @param {boolean} jumped
   */
  _take(frame, jumped) {
    this.time = frame.time;
    this.furthest = Math.max(this.furthest, frame.time);
    this.state.time = frame.time;
    this.state.actions = frame.actions;
    this.show(frame, jumped);
  }

  /**
   * Do one thing after the other.
   * @param {() => Promise<void>} work
   * @returns {Promise<void>}
   */
  async _do(work) {
    const finished = new Promise((/** @type {(value: void) => void} */ resolve) => {
      this.queue.push(async () => {
        await work();
        resolve();
      });
    });
    if (!this.playing) this.tellBusy(true);
    if (!this.working) {
      this.working = true;
      while (this.queue.length > 0) await this.queue.shift()?.();
      this.working = false;
      if (!this.playing) this.tellBusy(false);
    }
    return finished;
  }
}
