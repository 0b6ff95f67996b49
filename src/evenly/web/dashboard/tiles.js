// The figures of now, in large type.

import { make, setText } from "../common/dom.js";
import { counted, number } from "../common/format.js";

/** @typedef {import("./model.js").Model} Model */

/**
 * @typedef {object} Tile
 * @property {string} title
 * @property {(model: Model) => string} value
 * @property {(model: Model) => string} note
 * @property {(model: Model) => boolean} [shown] by default always
 */

/** @type {Tile[]} */
const TILES = [
  {
    title: "Sessions",
    value: (model) => number(model.figures?.sessions),
    note: (model) => `${number(mean(model.levelSessions()))} per serving pool`,
  },
  {
    title: "Starts per second",
    value: (model) => number(model.startsPerSecond()),
    note: (model) => (model.kind === "dispatcher" ? "placed here, last 10 s" : "last 10 s"),
  },
  {
    title: "Threshold",
    value: (model) => number(model.figures?.threshold),
    note: (model) => (model.figures?.alpha == null ? `policy ${model.figures?.policy}` : `alpha ${model.figures.alpha}`),
  },
  {
    title: "Fullest pool",
    value: (model) => number(model.levelSessions().at(-1)),
    note: (model) => `emptiest ${number(model.levelSessions()[0])}`,
  },
  {
    title: "Spread",
    value: (model) => number(model.meanSpread()),
    note: (model) => (model.weights === null ? "standard deviation" : "pools have different weights"),
  },
  {
    title: "Messages per session",
    value: (model) => number(tokenMessages(model)),
    note: () => "green and yellow tokens, last minute",
    shown: (model) => model.hasMessages,
  },
  {
    title: "Pools",
    value: (model) => number(model.names.length),
    note: (model) => states(model),
  },
];

/** The row of figures. */
export class Tiles {
  /**
   * @param {HTMLElement} parent
   * @param {Model} model
   */
  constructor(parent, model) {
    this.model = model;
    /** @private */
    this.tiles = TILES.map((tile) => {
      const value = make("p", { class: "value" });
      const note = make("p", { class: "soft" });
      const box = make("div", { class: "card tile" }, make("h2", { text: tile.title }), value, note);
      parent.append(box);
      return { tile, box, value, note };
    });
  }

  update() {
    for (const { tile, box, value, note } of this.tiles) {
      box.hidden = tile.shown?.(this.model) === false;
      setText(value, tile.value(this.model));
      setText(note, tile.note(this.model));
    }
  }
}

/** @param {Int32Array} sessions */
function mean(sessions) {
  return sessions.reduce((sum, each) => sum + each, 0) / Math.max(sessions.length, 1);
}

/** @param {Model} model */
function tokenMessages(model) {
  const each = model.messagesPerSession();
  if (each === null) return null;
  const kinds = Object.keys(model.figures?.messages ?? {});
  return ["green", "yellow"].reduce((sum, kind) => sum + (each[kinds.indexOf(kind)] ?? 0), 0);
}

/** @param {Model} model */
function states(model) {
  const counts = new Map();
  for (const at of model.stateAt) counts.set(at, (counts.get(at) ?? 0) + 1);
  const words = [...counts].sort((one, other) => one[0] - other[0]).map(([at, count]) => `${number(count)} ${model.states[at]}`);
  return words.join(", ") || counted(0, "pool");
}
