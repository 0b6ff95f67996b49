// The stream of the server: one for all views. It reconnects by itself and says how fresh it is.
//
// fetch instead of EventSource: it can send headers, so no token ever has to be in a URL.

import { headers } from "./api.js";

/** @typedef {"connecting" | "live" | "stale" | "login"} Status */

const STALE_MS = 3000;
const GIVE_UP_MS = 8000;
const FIRST_RETRY_MS = 300;
const MAX_RETRY_MS = 5000;
const MAX_MESSAGE = 16 * 1024 * 1024; // characters: a page must not grow without end, whatever the server does

/** A stream that is always on its way back. */
export class Stream {
  /**
   * @param {string} url
   * @param {(event: string, data: any) => void} onMessage
   * @param {(status: Status, problem: string) => void} onStatus
   */
  constructor(url, onMessage, onStatus) {
    this.url = url;
    this.onMessage = onMessage;
    this.onStatus = onStatus;
    /** @type {Status} */
    this.status = "connecting";
    this.heard = 0;
    /** whether a login is needed here */
    this.guarded = false;
    /** @private @type {AbortController | undefined} */
    this.current = undefined;
    /** @private */
    this.retry = FIRST_RETRY_MS;
    /** @private @type {number | undefined} */
    this.timer = undefined;
    setInterval(() => this.watch(), 500);
  }

  /** Connect now, also if a connection is open. */
  async start() {
    clearTimeout(this.timer);
    this.current?.abort();
    const attempt = (this.current = new AbortController());
    this.heard = performance.now();
    try {
      const answer = await fetch(this.url, { headers: headers(), cache: "no-store", signal: attempt.signal });
      if (answer.status === 401) {
        this.say("login", "");
        return;
      }
      if (!answer.ok || answer.body === null) throw new Error((await problemOf(answer)) ?? `status ${answer.status}`);
      this.guarded = answer.headers.has("X-Evenly-Guarded");
      await this.read(answer.body, attempt);
      throw new Error("the server ended the stream");
    } catch (error) {
      if (this.current !== attempt) return;
      this.say(this.status === "connecting" ? "connecting" : "stale", error instanceof Error ? error.message : "");
      this.timer = window.setTimeout(() => this.start(), this.retry * (0.75 + Math.random() / 2));
      this.retry = Math.min(2 * this.retry, MAX_RETRY_MS);
    }
  }

  /** Whether it is connected, or on its way. */
  get wanted() {
    return this.current !== undefined;
  }

  /** Disconnect, until `start` is called. */
  stop() {
    clearTimeout(this.timer);
    this.current?.abort();
    this.current = undefined;
  }

  /**
   * @private
   * @param {ReadableStream<Uint8Array>} body
   * @param {AbortController} attempt
   */
  async read(body, attempt) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.current !== attempt) return;
      this.heard = performance.now();
      text += decoder.decode(value, { stream: true });
      if (text.length > MAX_MESSAGE) throw new Error("a message was too long");
      const messages = text.split("\n\n");
      text = messages.pop() ?? "";
      for (const message of messages) this.take(message);
    }
  }

  /**
   * @private
   * @param {string} message
   */
  take(message) {
    const [first, second] = message.split("\n", 2);
    if (first === undefined || second === undefined) return;
    this.retry = FIRST_RETRY_MS;
    this.onMessage(first.slice("event: ".length), JSON.parse(second.slice("data: ".length)));
    this.say("live", "");
  }

  /** @private */
  watch() {
    if (this.current === undefined) return;
    const silent = performance.now() - this.heard;
    if (this.status === "live" && silent > STALE_MS) this.say("stale", "");
    else if (this.status === "stale") this.say("stale", "");
    if (this.status !== "login" && silent > GIVE_UP_MS) this.start();
  }

  /**
   * @private
   * @param {Status} status
   * @param {string} problem
   */
  say(status, problem) {
    this.status = status;
    this.onStatus(status, problem);
  }
}

/** @param {Response} answer */
async function problemOf(answer) {
  try {
    return /** @type {{ detail?: string }} */ (await answer.json()).detail;
  } catch {
    return undefined;
  }
}
