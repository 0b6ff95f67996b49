// Prints the commands of states given as addresses, what they leave out, and the addresses written again.

import { readFileSync } from "node:fs";
import { startOf } from "../../../src/evenly/web/playground/story/scenes.js";
import { commandOf, leftOut } from "../../../src/evenly/web/playground/view/command.js";
import { readState, specsOf, writeState } from "../../../src/evenly/web/playground/view/state.js";
import { newSystem } from "../../../src/evenly/web/playground/sim/system.js";

function figures(state, index) {
  const system = newSystem(specsOf(state)[index]);
  for (const action of state.actions) {
    system.advance(action.time, Infinity);
    if (action.lane < 0 || action.lane === index) system.apply(action);
  }
  system.advance(state.time, Infinity);
  return system.averages();
}

const answers = JSON.parse(readFileSync(0, "utf8")).map((fragment) => {
  const state = readState(fragment, startOf);
  const specs = specsOf(state);
  return {
    written: writeState(state),
    commands: state.lanes.map((lane, index) => commandOf(state, lane, index, specs[index].delay)),
    figures: state.lanes.map((_, index) => figures(state, index)),
    leftOut: leftOut(state),
  };
});
console.log(JSON.stringify(answers));
