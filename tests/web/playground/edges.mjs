// Prints the edges of the ziggurat's strips.

import { ziggurat } from "../../../src/evenly/web/playground/sim/ziggurat.js";

console.log(JSON.stringify([...ziggurat()]));
