/** The playground: reads the address, builds the page, and connects what a visitor does with the run. */

import { announce } from "../common/announce.js";
import { byId, make, setText } from "../common/dom.js";
import { prefersStillness } from "../common/theme.js";
import { EngineClient } from "./engine/client.js";
import { MOST_ACTIONS } from "./engine/engine.js";
import { sceneOf, startOf, SCENES } from "./story/scenes.js";
import { Chart, METRICS } from "./view/chart.js";
import { controlMakers } from "./view/controls.js";
import { showLegend } from "./view/legend.js";
import { LaneView } from "./view/lane.js";
import { Numbers } from "./view/numbers.js";
import { Player } from "./view/player.js";
import { commandNote, commandText, downloadCsv, downloadPng, downloadSvg, offerText } from "./view/share.js";
import { coverage, LIMITS, readState, SETTLE, specsOf, writeState } from "./view/state.js";
import { describeEvent } from "./view/flights.js";
import { fillNavigation, showScene } from "./view/story.js";

/** @typedef {import("./view/state.js").State} State */
/** @typedef {import("./engine/engine.js").Frame} Frame */

const ADDRESS_MS = 1000; // between two updates of the address while a run plays

class App {
  constructor() {
    /** @type {State} */
    this.state = /** @type {State} */ (startOf(SCENES[0].id));
    this.player = new Player(
      new EngineClient(),
      this.state,
      (frame, jumped) => this.show(frame, jumped),
      () => this.showPlaying(),
      (busy) => byId("lanes", HTMLElement).setAttribute("aria-busy", String(busy)),
    );
    this.chart = new Chart(byId("chart", HTMLElement));
    this.numbers = new Numbers(byId("numbers", HTMLElement));
    /** @type {LaneView[]} */
    this.views = [];
    /** @type {import("./view/controls.js").Control[]} */
    this.controls = [];
    /** @type {Frame | null} */
    this.frame = null;
    this.written = 0;
    this.address = "";
    this.scene = "";
    /** @type {number[]} */
    this.thresholds = [];
    this.makers = controlMakers({
      setLoad: (load) => this.setLoad(load),
      scaleLoad: (factor) => this.setLoad((this.frame?.lanes[0].load ?? this.state.load) * factor),
      change: (change) => this.change(change),
      setThreshold: (lane, threshold) => this.setThreshold(lane, threshold),
      killFullest: () => this.killFullest(),
      reviveAll: () => this.reviveAll(),
      restart: () => this.change((state) => Object.assign(state, startOf(state.scene)), true),
      step: () => this.step(),
      averageFromNow: () => this.act({ type: "average", value: 0, lane: -1 }, "Averages start now."),
    });
  }

  run() {
    fillNavigation();
    this.fillMetrics();
    this.listen();
    this.open();
    window.addEventListener("hashchange", () => {
      if (window.location.hash.slice(1) !== this.address) this.open();
    });
  }

  /** Show what the address says. */
  open() {
    const fragment = window.location.hash.slice(1);
    this.address = fragment;
    const found = readState(fragment, (scene) => startOf(scene === "" ? SCENES[0].id : scene));
    byId("bad-link", HTMLElement).hidden = found !== null;
    byId("full-link", HTMLElement).hidden = true;
    const state = found ?? /** @type {State} */ (startOf(SCENES[0].id));
    const fresh = !/(^|&)t=/.test(fragment); // a link to a moment opens paused
    this.player.pause();
    Object.assign(this.state, state);
    this.enter();
    void this.begin().then(() => {
      if (fresh && !prefersStillness()) this.player.play();
    });
  }

  /** Show the texts and controls of the scene. */
  enter() {
    const scene = sceneOf(this.state.scene);
    showScene(scene.id);
    this.controls = scene.controls.map((name) => this.makers[name]());
    byId("controls", HTMLElement).replaceChildren(...this.controls.map((control) => control.element));
    document.body.dataset.scene = scene.id;
    const kill = this.mayKill ? "Left and right choose a pool, Enter kills or revives it." : "Left and right choose a pool.";
    setText(byId("stage-help", HTMLElement), `${kill} Up and down move the threshold where there is one.`);
    this.showSpeed();
    this.chart.metric = scene.metric;
    byId("metric", HTMLSelectElement).value = scene.metric;
    if (this.scene !== scene.id && this.scene !== "") {
      announce(`Scene: ${scene.title}.`);
      byId("scene-title", HTMLElement).focus({ preventScroll: true });
      window.scrollTo({ top: 0 });
    }
    this.scene = scene.id;
  }

  /** Start the run of the state, up to its time. */
  begin() {
    const { state } = this;
    state.actions = state.actions.filter(({ type, value }) => !(type === "kill" || type === "revive") || value < state.pools);
    this.frame = null;
    this.thresholds = [];
    this.views = specsOf(state).map(
      (spec, index) =>
        new LaneView(index, spec, {
          setThreshold: (lane, threshold) => this.setThreshold(lane, threshold),
          togglePool: (lane, pool) => this.togglePool(lane, pool),
          kills: this.mayKill,
          say: announce,
        }),
    );
    const lanes = byId("lanes", HTMLElement);
    lanes.replaceChildren(...this.views.map((view) => view.element));
    lanes.dataset.count = String(this.views.length);
    showLegend(specsOf(state));
    this.chart.start(state.lanes);
    this.numbers.start(state.lanes);
    return this.player.restart();
  }

  /**
   * @param {Frame} frame
   * @param {boolean} jumped
   */
  show(frame, jumped) {
    if (frame.lanes.length !== this.views.length) return;
    this.frame = frame;
    if (jumped) this.tell("");
    const { settled, disturbed } = coverage(frame.actions, frame.time);
    const wanted = Math.max(...frame.lanes.map((lane, index) => this.views[index].wanted(lane))); // one scale for all lanes
    frame.lanes.forEach((lane, index) => this.views[index].show(lane, { time: frame.time, jumped, disturbed, wanted }));
    this.chart.show(frame);
    if (jumped || !this.player.playing) this.chart.redraw();
    this.numbers.show(
      frame.lanes.map((lane, index) => ({
        frame: lane,
        predictions: /** @type {import("./theory/predict.js").Predictions} */ (this.views[index].predictions),
      })),
      settled,
    );
    for (const control of this.controls) control.update(this.state, frame);
    this.showTime(frame);
    this.announceThresholds(frame);
    if (!this.player.playing || performance.now() - this.written > ADDRESS_MS) this.writeAddress();
  }

  /** @param {Frame} frame */
  showTime(frame) {
    const scrubber = byId("scrubber", HTMLInputElement);
    scrubber.max = String(Math.max(this.player.furthest, 1));
    if (document.activeElement !== scrubber || this.player.playing) scrubber.value = String(frame.time);
    setText(byId("time", HTMLElement), frame.time.toFixed(2));
    const { since, settled } = coverage(frame.actions, frame.time);
    const next = frame.actions.find((action) => action.type === "average" && action.time >= frame.time);
    const from = `Averages since ${since === 0 ? "the start" : `time ${round(since)}`}, next to what theory predicts for a large system.`;
    const anew = next === undefined || settled ? "" : ` They start again at time ${round(next.time)}, when the system has settled.`;
    setText(byId("numbers-since", HTMLElement), from + anew);
  }

  /** @param {Frame} frame */
  announceThresholds(frame) {
    frame.lanes.forEach((lane, index) => {
      const before = this.thresholds[index];
      this.thresholds[index] = lane.threshold;
      if (before === undefined || lane.threshold < 0 || before === lane.threshold) return;
      const which = frame.lanes.length > 1 ? ` of policy ${index + 1}` : "";
      announce(`Threshold${which} is now ${lane.threshold}.`);
    });
  }

  writeAddress() {
    if (window.location.hash.slice(1) !== this.address) return; // a visitor wants to go elsewhere: `open` follows
    this.written = performance.now();
    this.address = writeState(this.state);
    window.history.replaceState(null, "", `#${this.address}`);
  }

  showPlaying() {
    const { playing } = this.player;
    const play = byId("play", HTMLButtonElement);
    setText(play, playing ? "Pause" : "Play");
    if (playing) this.tell("");
    play.setAttribute("aria-pressed", String(playing));
    if (!playing) this.writeAddress();
  }

  // --- what a visitor does ---

  /** In the sandbox, pools can be killed and visitors say themselves when averages start; a scene does not ask for it. */
  get mayKill() {
    return sceneOf(this.state.scene).controls.includes("kill");
  }

  /** How long after a change the averages start again; 0 for never. */
  get settle() {
    return this.mayKill ? 0 : SETTLE;
  }

  /**
   * Change something that runs the past again, on the same random numbers, up to the same time.
   * @param {(state: State) => void} change
   * @param {boolean} [play]
   */
  change(change, play = this.player.playing) {
    this.player.pause();
    change(this.state);
    void this.begin().then(() => {
      if (play) this.player.play();
    });
  }

  /**
   * @param {{type: import("./view/state.js").TimedAction["type"], value: number, lane: number}} action
   * @param {string} sentence
   */
  act(action, sentence) {
    if (this.isFull()) return;
    if (action.type === "load" && this.state.time === 0) {
      this.change((state) => {
        state.load = action.value;
      });
    } else {
      void this.player.act(action, this.settle);
    }
    announce(sentence);
  }

  /** Whether the address has no room for another action: then the visitor is told, and a link stays true. */
  isFull() {
    const kept = this.state.actions.filter((action) => action.time <= this.state.time || action.type === "average");
    const full = kept.length >= MOST_ACTIONS;
    byId("full-link", HTMLElement).hidden = !full;
    return full;
  }

  /** Go to the next event, and say in scenes that ask for it what happened. */
  step() {
    void this.player.step().then(() => {
      const lane = this.frame?.lanes[0];
      if (lane !== undefined) this.tell(describeEvent(lane.traffic));
    });
  }

  /** @param {string} sentence about the last event, in scenes that have a place for it */
  tell(sentence) {
    const place = document.getElementById("event");
    if (place !== null) setText(place, sentence);
  }

  /** @param {number} wanted */
  setLoad(wanted) {
    const [low, high] = LIMITS.load;
    const load = Math.min(Math.max(Math.round(wanted * 1000) / 1000, low), high);
    if (!this.mayKill) this.player.hurryUntil = this.state.time + SETTLE;
    this.act({ type: "load", value: load, lane: -1 }, `Load ${load}.`);
  }

  /**
   * @param {number} lane
   * @param {number} threshold
   */
  setThreshold(lane, threshold) {
    if (threshold > LIMITS.threshold[1] || threshold === this.frame?.lanes[lane].threshold || this.isFull()) return;
    if (this.state.time > 0) {
      void this.player.act({ type: "threshold", value: threshold, lane }, this.settle);
      return;
    }
    this.change((state) => {
      state.lanes[lane].threshold = threshold;
    });
  }

  /**
   * @param {number} lane
   * @param {number} pool
   */
  togglePool(lane, pool) {
    const dead = (this.frame?.lanes[lane].tasks[pool] ?? 0) < 0;
    this.act({ type: dead ? "revive" : "kill", value: pool, lane: -1 }, `Pool ${pool + 1} ${dead ? "is back" : "is killed"}.`);
  }

  killFullest() {
    const tasks = this.frame?.lanes[0].tasks ?? new Int16Array();
    const pool = tasks.indexOf(Math.max(...tasks));
    this.act({ type: "kill", value: pool, lane: -1 }, `Pool ${pool + 1} is killed.`);
  }

  reviveAll() {
    this.frame?.lanes[0].tasks.forEach((tasks, pool) => {
      if (tasks < 0) this.act({ type: "revive", value: pool, lane: -1 }, `Pool ${pool + 1} is back.`);
    });
  }

  listen() {
    const { player } = this;
    const press = (/** @type {string} */ id, /** @type {() => void} */ action) =>
      byId(id, HTMLButtonElement).addEventListener("click", action);
    press("play", () => (player.playing ? player.pause() : player.play()));
    press("step", () => this.step());
    press("reset", () => void player.seek(0));
    press("link", () => {
      player.pause();
      void offerText("Link to this run", window.location.href, "It reproduces the run to the last event.");
    });
    press("command", () => {
      player.pause();
      if (this.state.time > 0) void offerText("As a command", commandText(this.state), commandNote(this.state));
      else announce("Let some time pass first.");
    });
    press("png", () => player.after(() => downloadPng(this.state, this.views)));
    press("svg", () => player.after(() => downloadSvg(this.state, this.views)));
    press("csv", () => player.after(() => downloadCsv(this.state, this.chart.rows)));
    byId("skip", HTMLAnchorElement).addEventListener("click", (event) => {
      event.preventDefault(); // the address holds the state
      byId("scene-title", HTMLElement).focus();
    });
    const scrubber = byId("scrubber", HTMLInputElement);
    scrubber.addEventListener("input", () => void player.seek(scrubber.valueAsNumber));
    const speed = byId("speed", HTMLInputElement);
    speed.addEventListener("input", () => {
      this.state.speed = Math.round(10 ** speed.valueAsNumber * 100) / 100;
      this.showSpeed();
    });
    byId("metric", HTMLSelectElement).addEventListener("change", (event) => {
      const { value } = /** @type {HTMLSelectElement} */ (event.target);
      this.chart.setMetric(/** @type {import("./view/chart.js").Metric} */ (value));
    });
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) player.pause();
    });
  }

  showSpeed() {
    const speed = byId("speed", HTMLInputElement);
    speed.value = String(Math.log10(this.state.speed));
    setText(byId("speed-value", HTMLElement), `${this.state.speed}×`);
  }

  /** Keys that work everywhere, unless something that is being edited needs them. @param {KeyboardEvent} event */
  key(event) {
    const { target } = event;
    const busy = target instanceof HTMLElement && target.closest("input, select, textarea, button, a, dialog") !== null;
    if (busy || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " ") byId("play", HTMLButtonElement).click();
    else if (event.key === ".") byId("step", HTMLButtonElement).click();
    else return;
    event.preventDefault();
  }

  fillMetrics() {
    const options = Object.entries(METRICS).map(([value, { title }]) => make("option", { value, text: title }));
    byId("metric", HTMLSelectElement).replaceChildren(...options);
  }
}

/** @param {number} time */
function round(time) {
  return Math.round(time * 1000) / 1000;
}

const app = new App();
app.run();
