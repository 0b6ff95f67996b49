// The pools as a table, a page at a time: for the keyboard, for screen readers, and to act on a pool.

import { byId, make, setText } from "../common/dom.js";
import { counted, number } from "../common/format.js";
import { tokenIcon } from "../common/tokens.js";

/** @typedef {import("./model.js").Model} Model */

const PER_PAGE = 10;
const SORT_MS = 3000; // rows that change places all the time cannot be read

/** @typedef {{ row: HTMLTableRowElement, cells: HTMLTableCellElement[], name: string, token: string, state: string }} Row */

/** The table with its search, filter and pages. */
export class PoolsView {
  /**
   * @param {Model} model
   * @param {(action: string, name: string) => void} onAction
   */
  constructor(model, onAction) {
    this.model = model;
    this.onAction = onAction;
    this.body = byId("rows", HTMLTableSectionElement);
    this.find = byId("find", HTMLInputElement);
    this.state = byId("state", HTMLSelectElement);
    this.order = byId("order", HTMLSelectElement);
    /** @private */ this.page = 0;
    /** @private @type {number[]} */ this.found = [];
    /** @private */ this.sorted = 0;
    /** @private */ this.members = -1;
    /** @private @type {Row[]} */ this.rows = [];
    for (const input of [this.find, this.state, this.order]) input.addEventListener("input", () => this.restart());
    byId("previous", HTMLButtonElement).addEventListener("click", () => this.turn(-1));
    byId("next", HTMLButtonElement).addEventListener("click", () => this.turn(1));
  }

  /**
   * Show one pool only.
   *
   * @param {number} position
   */
  select(position) {
    this.find.value = this.model.names[position] ?? "";
    this.state.value = "";
    this.restart();
    this.find.focus();
  }

  update() {
    const now = performance.now();
    const busy = this.body.matches(":hover, :focus-within");
    if (this.members !== this.model.membersChanged || (now - this.sorted > SORT_MS && !busy)) this.search();
    this.render();
  }

  /** Describe the states that pools can have, once they are known. */
  offerStates() {
    const known = [...this.state.options].map((option) => option.value);
    for (const state of this.model.states) {
      if (!known.includes(state)) this.state.append(make("option", { value: state, text: state }));
    }
  }

  /** @private */
  restart() {
    this.page = 0;
    this.search();
    this.render();
  }

  /** @private @param {number} pages */
  turn(pages) {
    this.page += pages;
    this.render();
  }

  /** @private */
  search() {
    const { model } = this;
    this.sorted = performance.now();
    this.members = model.membersChanged;
    const text = this.find.value.trim().toLowerCase();
    const found = [];
    for (let at = 0; at < model.names.length; at += 1) {
      const words = `${model.names[at]} ${model.addresses?.[at] ?? ""}`.toLowerCase();
      if (words.includes(text) && (this.state.value === "" || model.stateOf(at) === this.state.value)) found.push(at);
    }
    const sign = this.order.value === "most" ? -1 : this.order.value === "fewest" ? 1 : 0;
    if (sign !== 0) {
      found.sort((one, other) => sign * ((model.sessions[one] ?? 0) - (model.sessions[other] ?? 0)) || one - other);
    }
    this.found = found;
  }

  /** @private */
  render() {
    const pages = Math.max(Math.ceil(this.found.length / PER_PAGE), 1);
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const shown = this.found.slice(this.page * PER_PAGE, (this.page + 1) * PER_PAGE);
    byId("weight-column", HTMLTableCellElement).hidden = this.model.weights === null;
    while (this.rows.length > shown.length) this.rows.pop()?.row.remove();
    while (this.rows.length < shown.length) this.rows.push(this.newRow());
    shown.forEach((position, at) => this.fill(/** @type {Row} */ (this.rows[at]), position));
    setText(byId("page", HTMLElement), pages === 1 ? counted(this.found.length, "pool") : `Page ${this.page + 1} of ${pages}, ${counted(this.found.length, "pool")}`);
    byId("previous", HTMLButtonElement).disabled = this.page === 0;
    byId("next", HTMLButtonElement).disabled = this.page === pages - 1;
  }

  /** @private @returns {Row} */
  newRow() {
    const classes = ["mono name", "number weight", "number sessions", "token", "", "actions"];
    // Narrow screens show rows as grids, which would take the roles away.
    const cells = classes.map((each) => make("td", { class: each, role: "cell" }));
    const row = make("tr", { role: "row" }, ...cells);
    this.body.append(row);
    return { row, cells, name: "", token: "", state: "" };
  }

  /**
   * @private
   * @param {Row} row
   * @param {number} position
   */
  fill(row, position) {
    const { model } = this;
    const [nameCell, weight, sessions, tokenCell, stateCell, actions] = /** @type {HTMLTableCellElement[]} */ (row.cells);
    if (!nameCell || !weight || !sessions || !tokenCell || !stateCell || !actions) return;
    const name = model.names[position] ?? "";
    const state = model.stateOf(position);
    const token = model.figures?.tokens === null ? "–" : model.tokenOf(position);
    if (row.name !== name) {
      const address = model.addresses?.[position];
      nameCell.replaceChildren(name, ...(!address ? [] : [make("small", { class: "soft", text: address })]));
    }
    weight.hidden = model.weights === null;
    setText(weight, String(model.weights?.[position] ?? 1));
    setText(sessions, number(model.sessions[position]));
    if (row.token !== token) {
      const icon = token === "–" ? [] : [tokenIcon(model.tokenOf(position))];
      tokenCell.replaceChildren(make("span", { class: "with-icon" }, ...icon, token));
    }
    if (row.state !== state || row.name !== name) {
      stateCell.replaceChildren(make("span", { class: `state state-${state}`, text: state }));
      this.offer(actions, state, name);
    }
    Object.assign(row, { name, token, state });
  }

  /**
   * Offer what can be done to a pool in this state. A button that had the focus gives it to its successor.
   *
   * @private
   * @param {HTMLElement} cell
   * @param {string} state
   * @param {string} name
   */
  offer(cell, state, name) {
    const drained = state === "draining";
    const possible = state === "leaving" ? [] : [drained ? "undrain" : "drain", "remove"];
    const hadFocus = cell.contains(document.activeElement);
    cell.replaceChildren(
      ...possible
        .filter((action) => this.model.actions.includes(action))
        .map((action) => {
          const label = action[0]?.toUpperCase() + action.slice(1);
          const button = make("button", { type: "button", class: "small", "aria-label": `${label} ${name}`, text: label });
          button.addEventListener("click", () => this.onAction(action, name));
          return button;
        }),
    );
    if (hadFocus) cell.querySelector("button")?.focus();
  }
}
