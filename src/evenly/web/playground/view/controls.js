/** The controls that a scene shows. Each is a label with an input; what it changes is up to the app. */

import { make, setText } from "../../common/dom.js";
import { POLICIES } from "../core/policies.js";
import { laneTitle, MOST_LANES } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./state.js").Lane} Lane */

/**
 * @typedef {object} Wishes what a visitor wants
 * @property {(load: number) => void} setLoad
 * @property {(factor: number) => void} scaleLoad
 * @property {(change: (state: State) => void) => void} change something that runs the past again
 * @property {(lane: number, threshold: number) => void} setThreshold
 * @property {() => void} killFullest
 * @property {() => void} reviveAll
 * @property {() => void} restart
 * @property {() => void} averageFromNow
 * @property {() => void} step
 */

/**
 * @typedef {object} Control
 * @property {HTMLElement} element
 * @property {(state: State, frame: import("../engine/engine.js").Frame | null) => void} update
 */

/**
 * @param {string} label
 * @param {{min: number, max: number, step: number, id: string}} range
 * @param {(value: number) => void} change
 * @param {(value: number) => string} [write]
 */
function slider(label, range, change, write = String) {
  const input = make("input", { type: "range", id: range.id, min: range.min, max: range.max, step: range.step });
  const output = make("output", { for: range.id });
  const element = make("div", { class: "control" }, make("label", { for: range.id, text: label }), output, input);
  input.addEventListener("input", () => change(input.valueAsNumber));
  return {
    element,
    /** @param {number} value */
    set(value) {
      if (input.value !== String(value)) input.value = String(value);
      setText(output, write(value));
    },
  };
}

/**
 * @param {string} text
 * @param {() => void} press
 * @param {string} [look]
 */
export function button(text, press, look = "") {
  const made = make("button", { type: "button", class: look, text });
  made.addEventListener("click", press);
  return made;
}

/** The pools a slider offers: it moves in steps that grow with the number. */
const POOLS = [2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 25, 30, 40, 50, 60, 80, 100, 120, 160, 200, 250, 300, 400, 500, 700, 1000];

/**
 * Where a number of pools is on the slider.
 * @param {number} pools
 */
function placeOf(pools) {
  const place = POOLS.findIndex((each) => each >= pools);
  return place < 0 ? POOLS.length - 1 : place;
}

/**
 * @param {Wishes} wishes
 * @returns {Record<string, () => Control>}
 */
export function controlMakers(wishes) {
  return {
    load() {
      const control = slider("Load: mean tasks per pool", { id: "load", min: 0.5, max: 15, step: 0.5 }, wishes.setLoad);
      return { element: control.element, update: (state, frame) => control.set(frame?.lanes[0].load ?? state.load) };
    },
    pools() {
      const pick = (/** @type {number} */ place) =>
        wishes.change((state) => {
          state.pools = POOLS[place];
        });
      const range = { id: "pools", min: 0, max: POOLS.length - 1, step: 1 };
      const control = slider("Pools", range, pick, (place) => String(POOLS[place]));
      return { element: control.element, update: (state) => control.set(placeOf(state.pools)) };
    },
    choices() {
      const set = (/** @type {number} */ value) =>
        wishes.change((state) => {
          for (const lane of state.lanes) if (lane.policy === "power-of-d") lane.choices = value;
        });
      const control = slider("Choices: pools asked for each task", { id: "choices", min: 1, max: 4, step: 1 }, set);
      return {
        element: control.element,
        update: (state) => control.set(state.lanes.find((lane) => lane.policy === "power-of-d")?.choices ?? 2),
      };
    },
    delay() {
      const set = (/** @type {number} */ value) =>
        wishes.change((state) => {
          state.delay = value;
        });
      const write = (/** @type {number} */ value) => (value === 0 ? "none" : `${value} of an average task`);
      const control = slider("Delay of tasks and messages", { id: "delay", min: 0, max: 0.5, step: 0.01 }, set, write);
      return { element: control.element, update: (state) => control.set(state.delay) };
    },
    threshold() {
      const element = make("div", { class: "control-group" });
      return { element, update: (state, frame) => updateThresholds(element, state, frame, wishes) };
    },
    demand() {
      const twice = button("Double the load", () => wishes.scaleLoad(2), "primary");
      const half = button("Halve the load", () => wishes.scaleLoad(0.5));
      const output = make("span", { class: "soft" });
      const update = (/** @type {State} */ state, /** @type {import("../engine/engine.js").Frame | null} */ frame) => {
        setText(output, `Load ${frame?.lanes[0].load ?? state.load}`);
      };
      return { element: make("div", { class: "buttons" }, twice, half, output), update };
    },
    kill() {
      const kill = button("Kill the fullest pool", wishes.killFullest, "danger");
      const revive = button("Revive all", wishes.reviveAll);
      const average = button("Average from now", wishes.averageFromNow);
      return { element: make("div", { class: "buttons" }, kill, revive, average), update: () => {} };
    },
    restart() {
      const again = button("Start again", wishes.restart, "primary");
      const element = make("div", { class: "control-group" });
      const thresholds = make("div", { class: "control-group" });
      element.append(thresholds, make("div", { class: "buttons" }, again));
      return { element, update: (state, frame) => updateThresholds(thresholds, state, frame, wishes) };
    },
    seed() {
      const input = make("input", { type: "number", id: "seed", min: 0, max: 999_999_999, step: 1 });
      const set = (/** @type {number} */ value) =>
        wishes.change((state) => {
          state.seed = value;
        });
      input.addEventListener("change", () => {
        if (input.validity.valid && Number.isInteger(input.valueAsNumber)) set(input.valueAsNumber);
      });
      const fresh = button("New luck", () => set(Math.floor(Math.random() * 1_000_000)));
      return {
        element: make("div", { class: "control inline" }, make("label", { for: "seed", text: "Seed" }), input, fresh),
        update: (state) => {
          if (document.activeElement !== input) input.value = String(state.seed);
        },
      };
    },
    lanes() {
      const element = make("div", { class: "control-group" });
      let shown = "";
      return {
        element,
        update: (state) => {
          const now = JSON.stringify(state.lanes);
          if (now === shown) return;
          shown = now;
          fillLanes(element, state, wishes);
        },
      };
    },
    step() {
      const one = button("Step: one event", wishes.step, "primary");
      const told = make("p", { id: "event" });
      return { element: make("div", { class: "control-group" }, make("div", { class: "buttons" }, one), told), update: () => {} };
    },
  };
}

/**
 * One slider for each threshold that is set by hand.
 * @param {HTMLElement} element
 * @param {State} state
 * @param {import("../engine/engine.js").Frame | null} frame
 * @param {Wishes} wishes
 */
function updateThresholds(element, state, frame, wishes) {
  state.lanes.forEach((lane, index) => {
    if (lane.policy !== "threshold" || lane.alpha !== null) return;
    const id = `threshold-${index}`;
    let input = element.querySelector(`#${id}`);
    if (!(input instanceof HTMLInputElement)) {
      const made = slider("Your threshold", { id, min: 0, max: 15, step: 1 }, (value) => wishes.setThreshold(index, value));
      element.append(made.element);
      input = element.querySelector(`#${id}`);
    }
    const value = String(frame?.lanes[index]?.threshold ?? lane.threshold);
    if (input instanceof HTMLInputElement && input.value !== value) input.value = value;
    const output = element.querySelector(`output[for="${id}"]`);
    if (output !== null) setText(output, value);
  });
}

/**
 * @param {HTMLElement} element
 * @param {State} state
 * @param {Wishes} wishes
 */
function fillLanes(element, state, wishes) {
  const focused = document.activeElement?.id ?? "";
  const rows = state.lanes.map((lane, index) => laneRow(lane, index, state, wishes));
  const add = button("Add a policy", () =>
    wishes.change((changed) => {
      changed.lanes.push({ policy: "round-robin", threshold: 0, alpha: null, choices: 2 });
    }),
  );
  add.disabled = state.lanes.length >= MOST_LANES;
  element.replaceChildren(...rows, make("div", { class: "buttons" }, add));
  if (focused !== "") document.getElementById(focused)?.focus();
}

/**
 * Remove a lane, with what was done to it alone.
 * @param {State} state
 * @param {number} index
 */
function removeLane(state, index) {
  state.lanes.splice(index, 1);
  state.actions = state.actions
    .filter((action) => action.lane !== index)
    .map((action) => ({ ...action, lane: action.lane > index ? action.lane - 1 : action.lane }));
}

/** @param {Lane} lane */
function kindOf(lane) {
  return lane.policy === "threshold" && lane.alpha !== null ? "learning" : lane.policy;
}

/**
 * @param {Lane} lane
 * @param {number} index
 * @param {State} state
 * @param {Wishes} wishes
 */
function laneRow(lane, index, state, wishes) {
  const id = `policy-${index}`;
  const select = make("select", { id, "aria-label": `Policy ${index + 1}` });
  const kinds = Object.entries(POLICIES).map(([name, { title }]) => [name, name === "threshold" ? "Tokens, by hand" : title]);
  for (const [kind, title] of [["learning", "Tokens, learning"], ...kinds]) {
    select.append(make("option", { value: kind, selected: kindOf(lane) === kind, text: title }));
  }
  select.addEventListener("change", () =>
    wishes.change((changed) => {
      const learning = select.value === "learning";
      const policy = learning ? "threshold" : select.value;
      const threshold = learning ? 0 : Math.floor(state.load) + (policy === "jbt" ? 1 : 0);
      changed.lanes[index] = { policy, threshold, alpha: learning ? "0.92" : null, choices: 2 };
    }),
  );
  const swatch = make("span", { class: `swatch series-${index + 1}`, "aria-hidden": "true" });
  const row = make("div", { class: "lane-row" }, swatch, select);
  const parameter = laneParameter(lane, index, wishes);
  if (parameter !== null) row.append(parameter);
  if (state.lanes.length > 1) {
    const remove = button("✕", () => wishes.change((changed) => removeLane(changed, index)), "quiet");
    remove.setAttribute("aria-label", `Remove ${laneTitle(lane)}`);
    row.append(remove);
  }
  return row;
}

/**
 * @param {Lane} lane
 * @param {number} index
 * @param {Wishes} wishes
 */
function laneParameter(lane, index, wishes) {
  /** @type {Record<string, [string, number, number, number, number, (lane: Lane, value: number) => void]>} */
  const kinds = {
    learning: ["α", Number(lane.alpha), 0.5, 0.99, 0.01, (each, value) => (each.alpha = value.toFixed(2))],
    "power-of-d": ["d", lane.choices, 1, 4, 1, (each, value) => (each.choices = value)],
    jbt: ["below", lane.threshold, 1, 30, 1, (each, value) => (each.threshold = value)],
    threshold: ["at", lane.threshold, 0, 30, 1, (each, value) => (each.threshold = value)],
  };
  const found = kinds[kindOf(lane)];
  if (found === undefined) return null;
  const [name, value, min, max, step, set] = found;
  const id = `parameter-${index}`;
  const input = make("input", { type: "number", id, min, max, step, value, "aria-label": `${name}, policy ${index + 1}` });
  input.addEventListener("change", () => {
    const wanted = Math.min(Math.max(input.valueAsNumber, min), max);
    if (Number.isFinite(wanted)) wishes.change((state) => set(state.lanes[index], wanted));
  });
  return make("span", { class: "parameter" }, make("span", { text: name, "aria-hidden": "true" }), input);
}
