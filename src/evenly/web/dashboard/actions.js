// Changes to pools: a question that says what will happen, the request, and a report when it has.

import { announce } from "../common/announce.js";
import { byId, make, setText } from "../common/dom.js";
import { counted } from "../common/format.js";
import { send } from "./api.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {{ title: string, text: string, yes: string, danger?: boolean }} Question */

const BRIEF_MS = 30_000; // what the reader has just done; other reports stay until they are dismissed
const MAX_REPORTS = 5;

/** Asks, acts and reports. */
export class Actions {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.dialog = byId("confirm", HTMLDialogElement);
    this.form = byId("confirm-form", HTMLFormElement);
    this.input = byId("confirm-input", HTMLInputElement);
    this.weight = byId("confirm-weight", HTMLInputElement);
    this.yes = byId("confirm-yes", HTMLButtonElement);
    /** @private @type {{ action: string, name: string }} */
    this.asked = { action: "", name: "" };
    /** @private @type {Set<string>} pools that the reader changed, and waits for */
    this.waiting = new Set();
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.confirmed();
    });
    byId("confirm-no", HTMLButtonElement).addEventListener("click", () => this.dialog.close());
  }

  /**
   * Ask whether to do this.
   *
   * @param {string} action
   * @param {string} name
   */
  ask(action, name) {
    this.asked = { action, name };
    const question = this.question(action, name);
    setText(byId("confirm-title", HTMLElement), question.title);
    setText(byId("confirm-text", HTMLElement), question.text);
    setText(byId("confirm-problem", HTMLElement), "");
    setText(this.yes, question.yes);
    this.yes.className = question.danger === true ? "danger" : "primary";
    this.yes.disabled = false;
    byId("confirm-field", HTMLElement).hidden = action !== "add";
    byId("weight-field", HTMLElement).hidden = !this.model.actions.includes("weigh");
    this.input.value = "";
    this.weight.value = "1";
    this.dialog.showModal();
    (action === "add" ? this.input : byId("confirm-no", HTMLButtonElement)).focus();
  }

  /** Report what the last message of the server brought. What the reader did not ask for is only announced. */
  update() {
    for (const { name, kind, text } of this.model.happenings) {
      if (kind === "empty" || kind === "failing" || this.waiting.has(name)) this.report(text, kind);
      else announce(text);
      if (kind === "gone" || kind === "serving") this.waiting.delete(name);
    }
  }

  /**
   * Show a sentence, and announce it.
   *
   * @param {string} text
   * @param {string} kind
   */
  report(text, kind = "") {
    announce(text);
    const parent = byId("reports", HTMLElement);
    const close = make("button", { type: "button", class: "quiet", "aria-label": "Dismiss", text: "×" });
    const box = make("div", { class: `report report-${kind}` }, make("p", { text }), close);
    close.addEventListener("click", () => box.remove());
    parent.append(box);
    while (parent.childElementCount > MAX_REPORTS) parent.firstElementChild?.remove();
    parent.scrollTop = parent.scrollHeight;
    if (kind === "done") setTimeout(() => box.remove(), BRIEF_MS);
  }

  /**
   * @private
   * @param {string} action
   * @param {string} name
   * @returns {Question}
   */
  question(action, name) {
    const open = this.model.sessions[this.model.names.indexOf(name)] ?? 0;
    const have = `Its ${counted(open, "open session")} ${open === 1 ? "continues" : "continue"}`;
    const fleet = this.model.kind === "dispatcher";
    switch (action) {
      case "drain":
        return {
          title: `Drain ${name}?`,
          text:
            `The pool gets no new sessions${fleet ? ", also if its agent restarts" : ""}. ` +
            (open === 0 ? "It has no open sessions." : `${have}. You get a report when it is empty.`),
          yes: "Drain",
        };
      case "undrain":
        return {
          title: `Undrain ${name}?`,
          text: `The pool gets new sessions again${fleet ? "" : ", slowly at first"}. ${have}.`,
          yes: "Undrain",
        };
      case "remove":
        return {
          title: `Remove ${name}?`,
          text:
            "The pool gets no new sessions. " +
            (open === 0 ? "It has no open sessions, so it is gone at once." : `${have}, and it is gone when the last one ends.`),
          yes: "Remove",
          danger: true,
        };
      default:
        return {
          title: "Add a pool",
          text:
            "The pool gets sessions from now on, slowly at first. It stays until it is removed" +
            (this.model.figures?.changesSurvive === true ? ", also after a restart." : `, or until the ${this.model.kind} restarts.`),
          yes: "Add",
        };
    }
  }

  /** @private */
  async confirmed() {
    const { action } = this.asked;
    const name = action === "add" ? this.input.value.trim() : this.asked.name;
    this.yes.disabled = true;
    setText(byId("confirm-problem", HTMLElement), "");
    try {
      const pool = await this.carryOut(action, name);
      this.dialog.close();
      this.waiting.add(name);
      this.report(this.done(action, name, pool.sessions ?? 0), "done");
    } catch (error) {
      setText(byId("confirm-problem", HTMLElement), error instanceof Error ? error.message : String(error));
      this.yes.disabled = false;
    }
  }

  /**
   * Return the weight that was typed. What is no number is the server's to reject, except that JSON has no NaN.
   *
   * @private
   */
  weightGiven() {
    if (!this.model.actions.includes("weigh")) return 1;
    const text = this.weight.value.trim();
    const weight = text === "" ? NaN : Number(text);
    if (!Number.isFinite(weight)) throw new Error(`The weight must be a number such as 1 or 2.5, not "${text}".`);
    return weight;
  }

  /**
   * @private
   * @param {string} action
   * @param {string} name
   */
  async carryOut(action, name) {
    if (action === "add") return send("POST", "pools", { address: name, weight: this.weightGiven() });
    const path = `pools/${encodeURIComponent(name)}`;
    return action === "remove" ? send("DELETE", path) : send("POST", `${path}/${action}`);
  }

  /**
   * @private
   * @param {string} action
   * @param {string} name
   * @param {number} open
   */
  done(action, name, open) {
    const left = open === 0 ? "" : ` ${counted(open, "session")} to go.`;
    switch (action) {
      case "drain":
        return open === 0 ? `Pool ${name} is drained and empty.` : `Pool ${name} is draining.${left}`;
      case "undrain":
        return `Pool ${name} gets sessions again.`;
      case "remove":
        return `Pool ${name} is leaving.${left}`;
      default:
        return `Pool ${name} was added.`;
    }
  }
}
