// The dashboard: connects the stream with the views.

import { announce } from "../common/announce.js";
import { byId, make, setText } from "../common/dom.js";
import { duration } from "../common/format.js";
import { tokenIcon } from "../common/tokens.js";
import { Actions } from "./actions.js";
import { login, logout } from "./api.js";
import { Bars } from "./bars.js";
import { Charts } from "./charts.js";
import { EventsView } from "./events_view.js";
import { MessagesView, PartsView } from "./lists.js";
import { Model } from "./model.js";
import { PoolsView } from "./pools_view.js";
import { Stream } from "./stream.js";
import { Tiles } from "./tiles.js";

const SUMMARY_MS = 5000; // between two descriptions of the picture
const HIDDEN_MS = 5000; // until a hidden tab disconnects

const app = byId("app", HTMLElement);
const loginView = byId("login-view", HTMLElement);
const pill = byId("status", HTMLElement);

const model = new Model();
const actions = new Actions(model);
const pools = new PoolsView(model, (action, name) => actions.ask(action, name));
const bars = new Bars(byId("bars", HTMLCanvasElement), byId("bar-label", HTMLElement), model, (at) => pools.select(at));
const views = [
  new Tiles(byId("tiles", HTMLElement), model),
  bars,
  pools,
  new MessagesView(model),
  new PartsView(model),
  new EventsView(model),
  actions,
];
/** @type {Charts | undefined} made when there is something to show: a hidden chart has no size */
let charts;
let described = 0;
let wasLive = false;

const stream = new Stream("dashboard/events", receive, showStatus);

/**
 * @param {string} event
 * @param {any} data
 */
function receive(event, data) {
  model.take(event, data);
  show(app);
  if (event === "hello") greet();
  charts ??= new Charts(byId("charts", HTMLElement), model);
  for (const view of views) view.update();
  charts.update();
  if (performance.now() - described > SUMMARY_MS || described === 0) {
    described = performance.now();
    byId("bars", HTMLCanvasElement).setAttribute("aria-label", bars.summary());
  }
}

function greet() {
  document.title = `evenly ${model.kind} ${location.host}`;
  setText(byId("title", HTMLElement), `${model.kind} at ${location.host}`);
  byId("add", HTMLButtonElement).hidden = !model.actions.includes("add");
  byId("logout", HTMLButtonElement).hidden = !stream.guarded;
  byId("metrics-link", HTMLElement).hidden = stream.guarded; // a browser that follows a link sends no token
  byId("legend", HTMLElement).replaceChildren(...legend());
  byId("legend-note", HTMLElement).hidden = model.figures?.tokens === null;
  pools.offerStates();
}

/**
 * @param {import("./stream.js").Status} status
 * @param {string} problem
 */
function showStatus(status, problem) {
  pill.dataset["status"] = status;
  app.classList.toggle("stale", status === "stale");
  if (status === "login") return askForLogin();
  if (status === "live") {
    setText(pill, "Live");
    if (!wasLive) announce("Connected.");
    wasLive = true;
  } else if (status === "stale") {
    setText(pill, `Stale: last update ${duration(Date.now() / 1000 - model.time)} ago`);
    if (problem !== "") pill.title = problem;
    if (wasLive) announce("The connection is lost. Figures are stale.");
    wasLive = false;
  } else {
    setText(pill, problem === "" ? "Connecting" : "Not reachable, trying again");
    pill.title = problem;
  }
}

/** @param {HTMLElement} view */
function show(view) {
  app.hidden = view !== app;
  loginView.hidden = view !== loginView;
}

function askForLogin() {
  wasLive = false;
  setText(pill, "Login needed");
  byId("logout", HTMLButtonElement).hidden = true;
  if (loginView.hidden) {
    show(loginView);
    byId("token", HTMLInputElement).focus();
  }
}

byId("login", HTMLFormElement).addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = byId("token", HTMLInputElement);
  const problem = byId("login-error", HTMLElement);
  setText(problem, "");
  try {
    await login(token.value, byId("keep", HTMLInputElement).checked);
    token.value = "";
    token.removeAttribute("aria-invalid");
    await stream.start();
  } catch (error) {
    setText(problem, error instanceof Error ? error.message : String(error));
    token.setAttribute("aria-invalid", "true");
    token.select();
  }
});

byId("logout", HTMLButtonElement).addEventListener("click", async () => {
  stream.stop();
  try {
    await logout();
  } catch (error) {
    actions.report(`Not logged out in this browser. ${error instanceof Error ? error.message : error}`, "failing");
  }
  await stream.start();
});

// Browsers open at most six connections to a port. With a stream in each, a seventh tab would not even load.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = window.setTimeout(() => stream.stop(), HIDDEN_MS);
  else if (!stream.wanted) {
    showStatus("connecting", "");
    stream.start();
  }
});

// On a phone, what is below the charts is a long way to scroll.
const phone = window.matchMedia("(max-width: 520px)");
function fold() {
  for (const each of document.querySelectorAll("details.fold")) each.toggleAttribute("open", !phone.matches);
}
phone.addEventListener("change", fold);
fold();

byId("add", HTMLButtonElement).addEventListener("click", () => actions.ask("add", ""));

/** What the looks of columns mean, as far as pools can look like that here. @returns {HTMLElement[]} */
function legend() {
  const tokens = [
    make("li", {}, tokenIcon("green"), "green: below the threshold"),
    make("li", {}, tokenIcon("yellow"), "yellow: at it"),
    make("li", {}, tokenIcon("none"), "none: above it"),
  ];
  const looks = Object.entries({ striped: ["warming", "full"], hollow: ["draining"], dashed: ["leaving", "silent"], crossed: ["failing"] });
  const states = looks.flatMap(([look, meant]) => {
    const words = meant.filter((state) => model.states.includes(state)).join(" or ");
    return words === "" ? [] : [make("li", {}, make("span", { class: `swatch swatch-${look}`, "aria-hidden": "true" }), `${look}: ${words}`)];
  });
  return [...(model.figures?.tokens === null ? [] : tokens), ...states];
}

stream.start();
