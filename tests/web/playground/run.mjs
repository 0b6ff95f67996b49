// Runs systems of the playground. Prints their averages at the end or, with `steps`, their state after each event.

import { readFileSync } from "node:fs";
import { copied, newSystem } from "../../../src/evenly/web/playground/sim/system.js";

const DEFAULTS = { threshold: 0, alpha: null, choices: 2, delay: 0, exponential: false, initial: 0, seed: 1 };

function state(system) {
  const tasks = Array.from({ length: system.spec.pools }, (_, pool) => system.tasksOf(pool));
  const tokens = tasks.map((_, pool) => system.token(pool));
  return { time: system.time, tasks, threshold: system.threshold, tokens };
}

function run({ spec, horizon, actions = [], steps = 0, detour = false }) {
  let system = newSystem({ ...DEFAULTS, ...spec });
  const states = [];
  if (steps > 0) {
    while (system.ledger.events < steps) {
      system.advance(Infinity, 1);
      states.push(state(system));
    }
    return { states, averages: system.averages() };
  }
  for (const { time, ...action } of actions) {
    system.advance(time, Infinity);
    system.apply(action);
  }
  if (detour) {
    // Leave a copy behind, go on, and come back to it.
    const kept = copied(system);
    system.advance(horizon, Infinity);
    system = kept;
  }
  system.advance(horizon, Infinity);
  return { ...state(system), averages: system.averages(), flying: system.flight?.length ?? 0, alive: [...system.alive] };
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(run)));
