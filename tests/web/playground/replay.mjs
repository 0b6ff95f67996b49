// Replays histories on the playground's policies, and prints what they decide at every event.

import { readFileSync } from "node:fs";
import { Dispatcher, LearningRule } from "../../../src/evenly/web/playground/core/dispatcher.js";
import { makePolicy } from "../../../src/evenly/web/playground/core/policies.js";

const { size, policies, dispatchers } = JSON.parse(readFileSync(0, "utf8"));

function chooser(uniforms) {
  const left = [...uniforms];
  return (candidates, length) => candidates.items[Math.floor(left.shift() * length)];
}

function playPolicy({ spec, events }) {
  const policy = makePolicy({ threshold: 0, alpha: null, choices: 2, ...spec }, size);
  return events.map((event) => {
    let { pool } = event;
    if (event.kind === "arrive") pool = policy.arrive(chooser(event.uniforms));
    else if (event.kind === "join") policy.join(pool, event.tasks);
    else if (event.kind === "leave") policy.leave(pool);
    else if (event.kind === "depart") policy.depart(pool);
    else policy.setThreshold(event.tasks);
    const members = [...policy.pools.items];
    const state = { pool, members, messages: [...policy.messages.sent], tasks: members.map((each) => policy.tasks(each)) };
    if (spec.policy !== "threshold") return state;
    const { threshold, green, yellow } = policy.dispatcher;
    return { ...state, threshold, green: [...green.items], yellow: [...yellow.items] };
  });
}

function playDispatcher(events) {
  const dispatcher = new Dispatcher(size, 2, new LearningRule("0.6"));
  return events.map((event) => {
    let pool = -1;
    if (event.kind === "join") dispatcher.join(event.pool);
    else if (event.kind === "leave") dispatcher.leave(event.pool);
    else if (event.kind === "report") dispatcher.receive(event.pool, event.tasks);
    else {
      pool = dispatcher.dispatch(chooser(event.uniforms));
      dispatcher.learn();
    }
    const { threshold, green, yellow } = dispatcher;
    return { pool, threshold, green: [...green.items], yellow: [...yellow.items] };
  });
}

console.log(JSON.stringify({ policies: policies.map(playPolicy), dispatchers: dispatchers.map(playDispatcher) }));
