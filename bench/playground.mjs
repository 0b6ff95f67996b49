// Prints how many events per second the playground's simulator makes in Node, without and with a delay.

import { newSystem } from "../src/evenly/web/playground/sim/system.js";

const spec = { policy: "threshold", threshold: 0, alpha: "0.92", choices: 2, exponential: false, initial: 5, seed: 1 };
const scale = Number(process.argv[2]);

function speed(delay) {
  const system = newSystem({ ...spec, pools: 500, load: 5.5, delay });
  system.advance(5, Infinity); // compiled by now
  const before = system.ledger.events;
  const started = process.cpuUsage();
  system.advance(5 + 100 * scale, Infinity);
  const { user, system: kernel } = process.cpuUsage(started);
  return ((system.ledger.events - before) / (user + kernel)) * 1e6;
}

console.log(JSON.stringify([speed(0), speed(0.05)]));
