// Messages by kind, and the other processes.

import { byId, make, setText } from "../common/dom.js";
import { duration, number } from "../common/format.js";

/** @typedef {import("./model.js").Model} Model */

/** @type {{ [kind: string]: string }} */
const KINDS = { green: "green tokens", yellow: "yellow tokens" };

/** @type {{ [kind: string]: string }} what the words mean that the page uses for processes */
const ABOUT = {
  gateway: "The gateway is an Envoy, which carries the sessions, and a picker, which chooses their pools.",
  picker: "The picker chooses a pool for each new session. Envoy asks it and carries the sessions.",
  dispatcher: "The dispatcher chooses a pool for each new session. Agents report how many the pools have.",
};

/**
 * Show a table whose rows are texts. Cells that did not change are left alone.
 *
 * @param {HTMLElement} body
 * @param {{ cells: string[], status?: string }[]} rows
 */
function fill(body, rows) {
  while (body.childElementCount > rows.length) body.lastElementChild?.remove();
  while (body.childElementCount < rows.length) {
    const cells = (rows[0]?.cells ?? []).map((_, at) => (at === 0 ? make("th", { scope: "row" }) : make("td", { class: "number" })));
    body.append(make("tr", {}, ...cells));
  }
  rows.forEach((row, at) => {
    const line = body.children[at];
    if (!(line instanceof HTMLElement)) return;
    line.dataset["status"] = row.status ?? "";
    row.cells.forEach((text, column) => {
      const cell = line.children[column];
      if (cell !== undefined) setText(cell, text);
    });
  });
}

/** Messages from pools, per session. */
export class MessagesView {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.body = byId("messages", HTMLElement);
    this.card = byId("messages-card", HTMLElement);
  }

  update() {
    const { figures } = this.model;
    this.card.hidden = !this.model.hasMessages;
    if (figures === undefined) return;
    const minute = this.model.messagesPerSession();
    fill(
      this.body,
      Object.entries(figures.messages).map(([kind, total], at) => ({
        cells: [KINDS[kind] ?? kind, number(minute?.[at]), number(figures.starts === 0 ? null : total / figures.starts), number(total)],
      })),
    );
  }
}

/** This process and the ones that it talks to, with their age. */
export class PartsView {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.body = byId("parts", HTMLElement);
    this.note = byId("parts-note", HTMLElement);
  }

  update() {
    const { model } = this;
    setText(this.note, ABOUT[model.kind] ?? "");
    const own = { cells: [`this ${model.kind}`, number(model.figures?.sessions), duration(model.time - model.started), "now"], status: "ok" };
    const others = model.parts.map((part) => ({
      cells: [
        `${part.kind} ${part.name}${part.reachable ? "" : ", not reachable"}${part.note === "" ? "" : `, ${part.note}`}`,
        part.sessions === null ? "" : number(part.sessions),
        part.age === null ? "" : duration(part.age),
        part.heard === null ? "" : `${duration(part.heard)} ago`,
      ],
      status: part.reachable ? "ok" : "lost",
    }));
    fill(this.body, [own, ...others]);
  }
}
