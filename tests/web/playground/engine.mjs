// Plays the engine's requests, and prints the frames that answer them.

import { readFileSync } from "node:fs";
import { Engine } from "../../../src/evenly/web/playground/engine/engine.js";

function play(requests) {
  const engine = new Engine();
  return requests.map((request) => {
    const frame = engine.handle({ milliseconds: Infinity, ...request });
    const lanes = frame.lanes.map(({ tasks, tokens, threshold, averages, fluid }) => ({
      tasks: [...tasks],
      tokens: [...tokens],
      threshold,
      averages,
      fluid: fluid?.q.slice(0, 12) ?? null,
    }));
    const { time, actions, keep } = frame;
    return { time, lanes, actions, keep: keep === Infinity ? null : keep, rows: frame.rows, checkpoints: engine.checkpoints.length };
  });
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(play)));
