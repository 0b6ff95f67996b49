// The event log of the server, newest first, with filters.

import { byId, make } from "../common/dom.js";
import { clock } from "../common/format.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./model.js").Line} Line */

const MAX_SHOWN = 200;
const PROBLEMS = /fail|fault|lost|refused|not |unavailable|silent|left out|no more|died|killed|cannot|ignored|forgotten|rejected/;

/**
 * Return what an event is about: the values of the filter.
 *
 * @param {string} name
 */
export function aboutOf(name) {
  if (name.startsWith("pool")) return "pool";
  if (name.startsWith("threshold") || name.startsWith("alpha")) return "threshold";
  return "process";
}

/** The list of events. */
export class EventsView {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.list = byId("events", HTMLElement);
    this.kind = byId("event-kind", HTMLSelectElement);
    this.text = byId("event-text", HTMLInputElement);
    /** @private */ this.seen = -1;
    for (const input of [this.kind, this.text]) input.addEventListener("input", () => this.render());
  }

  update() {
    if (this.seen === this.model.linesAdded) return;
    this.seen = this.model.linesAdded;
    this.render();
  }

  /** @private */
  render() {
    const text = this.text.value.trim().toLowerCase();
    const wanted = this.model.lines.filter((line) => this.matches(line, text)).slice(-MAX_SHOWN).reverse();
    const rows = wanted.map((line) => row(line));
    this.list.replaceChildren(...(rows.length > 0 ? rows : [make("li", { class: "soft", text: "No events." })]));
  }

  /**
   * @private
   * @param {Line} line
   * @param {string} text
   */
  matches([, , name, facts], text) {
    const kind = this.kind.value;
    if (kind === "problem" ? !PROBLEMS.test(name) : kind !== "" && aboutOf(name) !== kind) return false;
    return text === "" || `${name} ${Object.values(facts).join(" ")} ${wordsOf(name, facts).join(" ")}`.toLowerCase().includes(text);
  }
}

/**
 * Return an event as a title and the rest.
 *
 * @param {string} name
 * @param {Line[3]} facts
 * @returns {[title: string, rest: string]}
 */
function wordsOf(name, facts) {
  if (name === "threshold changed") {
    const { before, threshold, lowest, highest, ...others } = facts;
    const ends = [Number(before), Number(threshold)];
    const further = Number(lowest) < Math.min(...ends) || Number(highest) > Math.max(...ends);
    const range = further ? [`(between ${lowest} and ${highest})`] : [];
    return [`threshold ${before} → ${threshold}`, [...range, ...listed(others)].join(" · ")];
  }
  const { endpoint, ...others } = facts;
  return [name, listed(endpoint === facts["pool"] ? others : facts).join(" · ")];
}

/** @param {Line[3]} facts */
function listed(facts) {
  return Object.entries(facts).map(([key, value]) => `${key} ${value}`);
}

/** @param {Line} line */
function row([, time, name, facts]) {
  const [title, words] = wordsOf(name, facts);
  return make(
    "li",
    { class: PROBLEMS.test(name) ? "problem-line" : "" },
    make("time", { datetime: new Date(time * 1000).toISOString(), text: clock(time) }),
    make("span", {}, make("b", { text: title }), " ", make("span", { class: "soft", text: words })),
  );
}
