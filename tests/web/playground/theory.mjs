// Prints predictions of the playground.

import { readFileSync } from "node:fs";
import * as theory from "../../../src/evenly/web/playground/theory/equilibrium.js";
import { Fluid } from "../../../src/evenly/web/playground/theory/fluid.js";

const { equilibria, settling, fluids } = JSON.parse(readFileSync(0, "utf8"));

function path({ times, steps = [], ...spec }) {
  const fluid = new Fluid({ threshold: 0, alpha: null, choices: 2, delay: 0, initial: 0, ...spec });
  const later = [...steps];
  return times.map((time) => {
    while (later.length > 0 && later[0][0] <= time) {
      fluid.advance(later[0][0]);
      fluid.load = later.shift()[1];
    }
    fluid.advance(time);
    return { occupancy: [...fluid.q], threshold: fluid.threshold };
  });
}

console.log(
  JSON.stringify({
    equilibria: equilibria.map((spec) => {
      const occupancy = theory.equilibrium({ choices: 2, delay: 0, ...spec }, spec.load, spec.threshold);
      return { occupancy, exactly: theory.exactly(occupancy), spread: theory.spreadOf(occupancy) };
    }),
    settling: settling.map(({ load, alpha, start }) => ({
      thresholds: theory.settledThreshold(load, alpha),
      optimal: theory.isOptimal(load, alpha),
      bound: theory.settleTimeBound(load, alpha, start),
      alphaMin: theory.alphaMin(load),
    })),
    fluids: fluids.map(path),
  }),
);
