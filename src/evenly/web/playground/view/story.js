/** The story's part of the page: the list of scenes, and the text of the one that is shown. */

import { byId, make } from "../../common/dom.js";
import { SCENES, sceneOf } from "../story/scenes.js";
import { STATEMENTS } from "../story/statements.js";

export function fillNavigation() {
  const items = SCENES.map((scene, index) =>
    make(
      "li",
      {},
      make("a", { href: `#scene=${scene.id}`, "data-scene": scene.id }, make("span", { class: "count", text: index + 1 }), scene.short),
    ),
  );
  byId("scenes", HTMLOListElement).replaceChildren(...items);
}

/** @param {string} id */
export function showScene(id) {
  const scene = sceneOf(id);
  const index = SCENES.indexOf(scene);
  for (const link of document.querySelectorAll("#scenes a")) {
    if (link.getAttribute("data-scene") === scene.id) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const current = document.querySelector('#scenes a[aria-current="page"]');
  const list = byId("scenes", HTMLOListElement);
  if (current instanceof HTMLElement) list.scrollTo({ left: current.offsetLeft - list.offsetLeft - 60 });
  byId("scene-title", HTMLElement).textContent = scene.title;
  byId("scene-text", HTMLElement).replaceChildren(...scene.text.map((text) => make("p", { text })));
  byId("scene-task", HTMLElement).textContent = scene.task;
  byId("scene-theory", HTMLElement).textContent = scene.theory;
  byId("scene-labels", HTMLElement).replaceChildren(...scene.labels.map(statement));
  const { formula } = scene;
  const behind = formula === undefined ? [] : [pill("Formula", () => tell("The formula", formula))];
  byId("scene-formula", HTMLElement).replaceChildren(...behind);
  step("previous", index - 1);
  step("next", index + 1);
  document.title = `${scene.title} · evenly playground`;
}

/**
 * A label of the paper that opens its statement.
 * @param {string} label
 */
function statement(label) {
  const words = STATEMENTS[label];
  return pill(label, () => tell(`The paper, ${label}`, `${words[0].toUpperCase()}${words.slice(1)}.`));
}

/**
 * @param {string} text
 * @param {() => void} press
 */
function pill(text, press) {
  const made = make("button", { type: "button", class: "label", text });
  made.addEventListener("click", press);
  return made;
}

/**
 * @param {string} title
 * @param {string} text
 */
function tell(title, text) {
  byId("statement-title", HTMLElement).textContent = title;
  byId("statement-text", HTMLElement).textContent = text;
  byId("statement", HTMLDialogElement).showModal();
}

/**
 * @param {string} id
 * @param {number} index
 */
function step(id, index) {
  const link = byId(id, HTMLAnchorElement);
  const scene = SCENES[index];
  link.hidden = scene === undefined;
  if (scene !== undefined) link.href = `#scene=${scene.id}`;
  const name = link.querySelector("span");
  if (name !== null && scene !== undefined) name.textContent = scene.title;
}
