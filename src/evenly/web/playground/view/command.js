/** The `evenly simulate` line that reproduces the figures of a lane. */

/** @typedef {import("./state.js").State} State */

/**
 * @param {State} state
 * @param {import("./state.js").Lane} lane
 * @param {number} index of the lane
 * @param {number} delay of the lane
 */
export function commandOf(state, lane, index, delay) {
  const loads = state.actions.filter((action) => action.type === "load" && (action.lane < 0 || action.lane === index));
  const past = loads.filter(
    (action, at) => action.time < state.time && action.time !== loads[at + 1]?.time, // the last one at a time counts
  );
  const parts = ["evenly simulate", `--policy ${lane.policy}`, `--pools ${state.pools}`];
  if (past.length === 0) {
    parts.push(`--load ${state.load}`);
  } else {
    const phases = [`0:${state.load}`, ...past.map((action) => `${action.time}:${action.value}`)];
    parts.push(`--schedule "${phases.join(",")}"`);
  }
  if (lane.policy === "threshold" || lane.policy === "jbt") parts.push(`--threshold ${lane.threshold}`);
  if (lane.policy === "threshold" && lane.alpha !== null) parts.push(`--alpha ${lane.alpha}`);
  if (lane.policy === "power-of-d") parts.push(`--sample-size ${lane.choices}`);
  if (delay > 0) parts.push(`--delay ${delay}`);
  if (state.initial > 0) parts.push(`--initial-tasks ${state.initial}`);
  const averages = state.actions.filter((action) => action.type === "average" && action.time < state.time);
  if (averages.length > 0) parts.push(`--warmup ${averages[averages.length - 1].time}`);
  parts.push(`--horizon ${state.time}`, `--seed ${state.seed}`);
  return parts.join(" ");
}

/**
 * What the command leaves out: it has no options for it. Empty if it leaves out nothing.
 * @param {State} state
 */
export function leftOut(state) {
  const done = new Set(state.actions.filter((action) => action.time < state.time).map((action) => action.type));
  const missing = [];
  if (done.has("kill") || done.has("revive")) missing.push("pools that you killed");
  if (done.has("threshold")) missing.push("thresholds that you set by hand");
  return missing.join(" and ");
}
