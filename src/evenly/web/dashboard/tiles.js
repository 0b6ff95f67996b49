// The figures of now, in large type.

import { make, setText } from "../common/dom.js";
import { counted, number } from "../common/format.js";

/** @typedef {import("./model.js").Model} Model */

/**
 * @typedef {object} Tile
 * @property {string} title
 * @property {(model: Model) => string} value
 * @property {(model: Model) => string} note
 * @property {string} [help]
 */

/** @type {Tile[]} */
const TILES = [
  {
    title: "Sessions",
    value: (model) => number(model.figures?.sessions),
    note: (model) => `${number((model.figures?.evenSessions ?? 0) / Math.max(model.figures?.even ?? 0, 1))} per serving pool`,
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
    title: "Spread",
    value: (model) => number(model.mean("spread")),
    note: (model) => (model.weights === null ? `best possible (JSQ): ${number(model.mean("jsq"))}` : "pools have different weights"),
    help:
      "Standard deviation of the sessions over the serving pools, mean of the last minute. JSQ sends every session to " +
      "a pool with the fewest: it is simulated in this page, with as many pools, starts and ends as counted here; " +
      "which session ends is random.",
  },
  {
    title: "Messages per session",
    value: (model) => number(tokenMessages(model)),
    note: (model) => (model.figures?.tokens === null ? "last minute" : "green and yellow tokens, last minute"),
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
      if (tile.help !== undefined) {
        const about = make("details", { class: "about" }, make("summary", {}, make("span", { class: "visually-hidden", text: `About ${tile.title.toLowerCase()}` })));
        about.append(make("p", { text: tile.help }));
        box.append(about);
      }
      parent.append(box);
      return { tile, value, note };
    });
  }

  update() {
    for (const { tile, value, note } of this.tiles) {
      setText(value, tile.value(this.model));
      setText(note, tile.note(this.model));
    }
  }
}

/** @param {Model} model */
function tokenMessages(model) {
  const each = model.messagesPerSession();
  if (each === null) return null;
  const kinds = Object.keys(model.figures?.messages ?? {});
  const counts = model.figures?.tokens === null ? ["other"] : ["green", "yellow"];
  return kinds.reduce((sum, kind, at) => sum + (counts.includes(kind) ? (each[at] ?? 0) : 0), 0);
}

/** @param {Model} model */
function states(model) {
  const counts = new Map();
  for (const at of model.stateAt) counts.set(at, (counts.get(at) ?? 0) + 1);
  const words = [...counts].sort((one, other) => one[0] - other[0]).map(([at, count]) => `${number(count)} ${model.states[at]}`);
  return words.join(", ") || counted(0, "pool");
}
