/** The engine in a worker: one frame for each request. */

import { Engine } from "./engine.js";

const engine = new Engine();

self.addEventListener("message", (event) => {
  self.postMessage(engine.handle(event.data));
});
