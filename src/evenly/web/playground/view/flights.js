/**
 * Tasks and messages in flight. Late ones are where the simulation says; instant ones fly for a moment, to be seen.
 */

import { GREEN, OTHER, RESYNC, YELLOW } from "../core/messages.js";
import { NOTICE, POLL, REPLY, TASK } from "../sim/base.js";
import { color } from "../../common/theme.js";

const MOST = 80; // in flight at once; more would be a blur
const DOWN_MS = 420;
const UP_MS = 520;
const FADE_MS = 700; // of a threshold that changes

/**
 * @typedef {object} Flight
 * @property {number} kind
 * @property {number} pool
 * @property {number} from level at which it starts or ends
 * @property {number} start milliseconds, or simulated time if it is late
 * @property {number} end
 * @property {boolean} late
 */

export class Flights {
  /** @param {number} pools */
  constructor(pools) {
    /** @type {Flight[]} */
    this.flying = [];
    this.landing = new Int16Array(pools); // tasks that have not landed yet, though they are counted
    this.now = 0;
    this.noticed = -Infinity; // when the threshold changed last
  }

  clear() {
    this.flying = [];
    this.landing.fill(0);
  }

  /**
   * Take in what a frame reports.
   * @param {import("../engine/engine.js").LaneFrame} frame
   * @param {number} now
   * @param {number} spreadMs instant events are spread over this time, that of a frame
   */
  add(frame, now, spreadMs) {
    const { traffic, tasks } = frame;
    for (let at = 0; at < traffic.length; at += 4) {
      const [kind, pool, sent, due] = traffic.slice(at, at + 4);
      if (kind === NOTICE) this.noticed = now;
      if (pool < 0 || this.flying.length >= MOST) continue;
      const late = due > sent;
      const down = kind === TASK || kind === POLL;
      const begin = now + (spreadMs * at) / traffic.length;
      const level = Math.max(tasks[pool], 0);
      if (kind === TASK && !late) this.landing[pool] += 1;
      this.flying.push({
        kind,
        pool,
        from: level,
        start: late ? sent : begin,
        end: late ? due : begin + (down ? DOWN_MS : UP_MS),
        late,
      });
    }
  }

  /**
   * Forget what has landed.
   * @param {number} now
   * @param {number} time
   */
  land(now, time) {
    this.now = now;
    this.flying = this.flying.filter((each) => {
      if ((each.late ? time : now) < each.end) return true;
      if (each.kind === TASK && !each.late) this.landing[each.pool] -= 1;
      return false;
    });
    return this.flying.length > 0 || now - this.noticed < FADE_MS;
  }
}

/**
 * Tell in one line what an event of a system with tokens was.
 * @param {number[]} traffic of that event
 */
export function describeEvent(traffic) {
  const events = Array.from({ length: traffic.length / 4 }, (_, at) => ({ kind: traffic[4 * at], pool: traffic[4 * at + 1] }));
  const task = events.find(({ kind }) => kind === TASK);
  const token = events.find(({ kind }) => kind === GREEN || kind === YELLOW);
  const color = token?.kind === GREEN ? "green" : "yellow";
  if (task !== undefined) {
    const reply = token === undefined ? "It gives no token back." : `It gives a ${color} token back.`;
    return `A task came and went to pool ${task.pool + 1}. ${reply}`;
  }
  return token === undefined ? "A task ended. Its pool stays silent." : `A task ended in pool ${token.pool + 1}, which gives a ${color} token.`;
}

/**
 * @param {import("./painter.js").Painter} painter
 * @param {import("./stage.js").Geometry} g
 * @param {Flights} flights
 * @param {number} time simulated
 */
export function drawFlights(painter, g, flights, time) {
  const size = Math.max(Math.min(g.column - g.gap, g.row, 16 * g.scale), 4);
  const top = 22 * g.scale;
  const home = g.left + g.columns / 2;
  for (const each of flights.flying) {
    const part = Math.min(Math.max(((each.late ? time : flights.now) - each.start) / (each.end - each.start), 0), 1);
    const down = each.kind === TASK || each.kind === POLL;
    const eased = each.late ? part : part * part * (3 - 2 * part);
    const share = down ? eased : 1 - eased; // 0 at the dispatcher, 1 at the pool
    const middle = g.x(each.pool) + g.column / 2;
    const x = down ? home + (middle - home) * Math.min(1, share * 1.6) : middle;
    const landing = g.y(each.from) + (each.kind === TASK ? size / 2 : 0);
    const y = top + (Math.min(landing, g.base - size / 2) - top) * share;
    drawOne(painter, each.kind, x, y, size, g.scale);
  }
  const fade = 1 - (flights.now - flights.noticed) / FADE_MS;
  if (fade > 0) {
    const y = top + (g.base - top) * (1 - fade);
    painter.line([g.left, y, g.left + g.columns, y], color("--threshold"), 1, []);
  }
}

/**
 * @param {import("./painter.js").Painter} painter
 * @param {number} kind
 * @param {number} x
 * @param {number} y
 * @param {number} size
 * @param {number} scale
 */
function drawOne(painter, kind, x, y, size, scale) {
  const half = size / 2;
  const radius = Math.max(Math.min(size * 0.42, 6 * scale), 2.5);
  if (kind === TASK) painter.boxes([x - half, y - half, size, size], color("--accent"));
  else if (kind === GREEN) painter.token("green", x, y, radius);
  else if (kind === YELLOW) painter.token("yellow", x, y, radius);
  else if (kind === RESYNC) painter.token("none", x, y, radius);
  else if (kind === POLL) painter.shape([x - radius, y - radius, x + radius, y - radius, x, y + radius], color("--series-2"));
  else if (kind === REPLY || kind === OTHER) {
    painter.shape([x - radius, y + radius, x + radius, y + radius, x, y - radius], color("--series-2"));
  }
}
