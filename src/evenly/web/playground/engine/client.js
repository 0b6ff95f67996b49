/** Talks to the engine: in a worker where the browser lets us start one, else in the page itself. */

import { Engine } from "./engine.js";

/** @typedef {import("./engine.js").Request} Request */
/** @typedef {import("./engine.js").Frame} Frame */

export class EngineClient {
  constructor() {
    /** @type {((frame: Frame) => void)[]} one for each request under way */
    this.waiting = [];
    /** @type {Worker | null} */
    this.worker = null;
    /** @type {Engine | null} */
    this.engine = null;
    const address = document.documentElement.dataset.worker;
    if (address === undefined) {
      this.engine = new Engine(); // a page that was opened as a file: browsers start no workers there
      return;
    }
    this.worker = new Worker(new URL(address, document.baseURI), { type: "module" });
    this.worker.addEventListener("message", (event) => this.waiting.shift()?.(event.data));
  }

  get busy() {
    return this.waiting.length > 0;
  }

  /**
   * @param {Request} request
   * @returns {Promise<Frame>}
   */
  ask(request) {
    if (this.engine !== null) return Promise.resolve(this.engine.handle(request));
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.worker?.postMessage(request);
    });
  }
}
