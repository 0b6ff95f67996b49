// What the page knows: the last message of the server, and what follows from the ones before.

/**
 * @typedef {object} Figures
 * @property {string} policy
 * @property {number | null} alpha
 * @property {number | null} threshold
 * @property {{ [weight: string]: number | null }} thresholds
 * @property {number} sessions
 * @property {number} starts since the start of the process
 * @property {number} spread over the serving pools
 * @property {[number, number] | null} tokens
 * @property {{ [kind: string]: number }} messages from pools; empty where none travels
 * @property {boolean} changesSurvive whether a restart keeps added pools
 */

/**
 * @typedef {object} Part
 * @property {string} kind
 * @property {string} name
 * @property {boolean} reachable
 * @property {number | null} age
 * @property {number | null} heard
 * @property {number | null} sessions
 * @property {string} note
 */

/** @typedef {[number: number, time: number, name: string, facts: { [key: string]: unknown }]} Line */
/** @typedef {{ time: number, starts: number, messages: number[] }} Moment */
/** @typedef {{ name: string, kind: "empty" | "gone" | "serving" | "failing", text: string }} Happening */

const TOKEN_STEPS = 4;
const STATE_STEPS = 16;
const MINUTE = 60;
const HOUR = 3600;
const MAX_LINES = 1000;
/** @type {import("../common/tokens.js").Token[]} */
export const TOKENS = ["none", "yellow", "green"];

/** The state of the system, and of the last minute and hour. */
export class Model {
  constructor() {
    this.kind = "";
    /** @type {string[]} */
    this.states = [];
    /** @type {string[]} */
    this.evenStates = [];
    /** @type {string[]} */
    this.actions = [];
    this.started = 0;
    this.time = 0;
    /** @type {Figures | undefined} */
    this.figures = undefined;
    /** @type {string[]} */
    this.names = [];
    /** @type {string[] | null} */
    this.addresses = null;
    /** @type {number[] | null} */
    this.weights = null;
    this.sessions = new Int32Array(0);
    this.stateAt = new Uint8Array(0);
    this.tokenAt = new Uint8Array(0);
    /** @type {Part[]} */
    this.parts = [];
    /** @type {Line[]} newest last */
    this.lines = [];
    /** @type {number[][]} rows: time, sessions, starts, threshold, spread */
    this.history = [];
    /** @type {Moment[]} of the last minute */
    this.moments = [];
    /** @type {Happening[]} since the last message */
    this.happenings = [];
    this.linesAdded = 0;
    this.membersChanged = 0;
  }

  /**
   * Take in a message of the stream.
   *
   * @param {string} event
   * @param {any} data
   */
  take(event, data) {
    this.happenings = [];
    if (event === "hello") this.hello(data);
    this.time = data.time;
    this.figures = /** @type {Figures} */ (data.figures);
    if (data.names !== undefined) this.setMembers(data);
    else this.change(data.changes);
    if (data.parts !== undefined) this.parts = data.parts;
    if (data.lines !== undefined) this.addLines(data.lines);
    if (data.point !== undefined) this.addPoint(data.point);
    this.addMoment(this.figures);
  }

  /**
   * @private
   * @param {any} data
   */
  hello(data) {
    this.kind = data.kind;
    this.states = data.states;
    this.evenStates = data.evenStates;
    this.actions = data.actions;
    this.started = data.started;
    this.history = data.history;
    this.lines = [];
    this.moments = [];
  }

  /** @private @param {any} data */
  setMembers(data) {
    const known = new Map(this.names.map((name, position) => [name, position]));
    /** @type {string[]} */
    const names = data.names;
    const before = { sessions: this.sessions, stateAt: this.stateAt, states: this.states };
    this.names = names;
    this.addresses = data.addresses;
    this.weights = data.weights;
    this.sessions = new Int32Array(names.length);
    this.stateAt = new Uint8Array(names.length);
    this.tokenAt = new Uint8Array(names.length);
    names.forEach((name, position) => {
      const old = known.get(name);
      if (old !== undefined) {
        this.sessions[position] = before.sessions[old] ?? 0;
        this.stateAt[position] = before.stateAt[old] ?? 0;
        known.delete(name);
      }
    });
    for (const name of known.keys()) this.happen(name, "gone", `Pool ${name} is gone.`);
    for (const [position, number] of /** @type {number[]} */ (data.numbers).entries()) this.set(position, number);
    this.membersChanged += 1;
  }

  /** @private @param {number[]} changes position and number in turn */
  change(changes) {
    for (let at = 0; at < changes.length; at += 2) this.set(changes[at] ?? 0, changes[at + 1] ?? 0);
  }

  /**
   * @private
   * @param {number} position
   * @param {number} number
   */
  set(position, number) {
    const token = number % TOKEN_STEPS;
    const rest = Math.floor(number / TOKEN_STEPS);
    const state = rest % STATE_STEPS;
    const sessions = Math.floor(rest / STATE_STEPS);
    this.report(position, state, sessions);
    this.tokenAt[position] = token;
    this.stateAt[position] = state;
    this.sessions[position] = sessions;
  }

  /**
   * Note what a reader may be waiting for.
   *
   * @private
   * @param {number} position
   * @param {number} state
   * @param {number} sessions
   */
  report(position, state, sessions) {
    const name = this.names[position] ?? "";
    const before = this.states[this.stateAt[position] ?? 0];
    const now = this.states[state];
    if (now === "draining" && sessions === 0 && (this.sessions[position] ?? 0) > 0) {
      this.happen(name, "empty", `Pool ${name} is empty.`);
    } else if (now === "failing" && before !== "failing" && before !== undefined && this.membersChanged > 0) {
      this.happen(name, "failing", `Pool ${name} is failing its health checks.`);
    } else if (now === "serving" && before === "warming") {
      this.happen(name, "serving", `Pool ${name} is serving.`);
    }
  }

  /**
   * @private
   * @param {string} name
   * @param {Happening["kind"]} kind
   * @param {string} text
   */
  happen(name, kind, text) {
    this.happenings.push({ name, kind, text });
  }

  /** @private @param {Line[]} lines */
  addLines(lines) {
    this.lines = [...this.lines, ...lines].slice(-MAX_LINES);
    this.linesAdded += 1;
  }

  /** @private @param {number[]} point */
  addPoint(point) {
    const oldest = (point[0] ?? 0) - HOUR;
    this.history = [...this.history.filter((row) => (row[0] ?? 0) >= oldest), point];
  }

  /** @private @param {Figures} now */
  addMoment(now) {
    this.moments.push({ time: this.time, starts: now.starts, messages: Object.values(now.messages) });
    while ((this.moments[0]?.time ?? this.time) < this.time - MINUTE) this.moments.shift();
  }

  /** Return the starts per second over the last ten seconds. */
  startsPerSecond() {
    const last = this.moments.at(-1);
    const first = this.moments.find((moment) => moment.time >= this.time - 10);
    if (last === undefined || first === undefined || last.time <= first.time) return 0;
    return (last.starts - first.starts) / (last.time - first.time);
  }

  /** Return messages of each kind per session started in the last minute, null while none has. */
  messagesPerSession() {
    const last = this.moments.at(-1);
    const first = this.moments[0];
    if (last === undefined || first === undefined || last.starts === first.starts) return null;
    const starts = last.starts - first.starts;
    return last.messages.map((count, kind) => (count - (first.messages[kind] ?? 0)) / starts);
  }

  /** Return the mean spread of the last minute, from the points of the history: all pages have the same. */
  meanSpread() {
    const points = this.history.filter((row) => (row[0] ?? 0) > this.time - MINUTE);
    if (points.length === 0) return this.figures?.spread ?? null;
    return points.reduce((sum, row) => sum + (row[4] ?? 0), 0) / points.length;
  }

  /** Whether pools send messages here. Only those of a dispatcher do. */
  get hasMessages() {
    return Object.keys(this.figures?.messages ?? {}).length > 0;
  }

  /** Return the sessions of the pools that are meant to be level, fewest first. */
  levelSessions() {
    return this.sessions.filter((_, position) => this.evenStates.includes(this.stateOf(position))).sort();
  }

  /** @param {number} position */
  stateOf(position) {
    return this.states[this.stateAt[position] ?? 0] ?? "";
  }

  /** @param {number} position */
  tokenOf(position) {
    return TOKENS[this.tokenAt[position] ?? 0] ?? "none";
  }

  /**
   * Return the threshold that applies to a pool.
   *
   * @param {number} position
   */
  thresholdOf(position) {
    const weight = this.weights?.[position];
    if (weight === undefined) return this.figures?.threshold ?? null;
    const found = Object.entries(this.figures?.thresholds ?? {}).find(([key]) => Number(key) === weight);
    return found === undefined ? null : found[1];
  }
}
