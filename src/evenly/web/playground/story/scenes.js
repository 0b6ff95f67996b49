/**
 * The story: short scenes that build up to a sandbox. Each has one thing to touch and one sentence of theory.
 */

/** @typedef {import("../view/state.js").State} State */

/**
 * @typedef {object} Scene
 * @property {string} id
 * @property {string} short for the navigation
 * @property {string} title
 * @property {string[]} text paragraphs
 * @property {string} task what to touch
 * @property {string} theory one true sentence
 * @property {string} [formula] behind a button
 * @property {string[]} labels of the paper's statements
 * @property {string[]} controls that the scene shows, see `view/controls.js`
 * @property {"fullest" | "spread" | "threshold"} metric of the chart
 * @property {Partial<State>} start
 */

/** @type {State} */
const BASE = {
  scene: "random",
  seed: 1,
  pools: 20,
  load: 5,
  delay: 0,
  initial: 0,
  speed: 0.5,
  lanes: [],
  actions: [],
  time: 0,
};

const TYPICAL = 743; // a seed whose first picture of random routing is as uneven as it usually is

/** Averages begin when the start has faded. @param {number} time @returns {import("../view/state.js").TimedAction[]} */
const averagesFrom = (time) => [{ type: "average", time, value: 0, lane: -1 }];

/**
 * @param {string} policy
 * @param {Partial<import("../view/state.js").Lane>} [more]
 * @returns {import("../view/state.js").Lane}
 */
const lane = (policy, more = {}) => ({ policy, threshold: 0, alpha: null, choices: 2, ...more });

/** @type {Scene[]} */
export const SCENES = [
  {
    id: "random",
    short: "Random",
    title: "Pick a server at random",
    text: [
      "Each square is a task that stays for a while: a video call, a game, an answer that a language model types out. " +
        "It comes in at the top, goes to one of 20 servers (we call them pools), and leaves when it is done.",
      "Here the choice is blind. The dotted line is an even share. Some pools have far more, " +
        "marked in orange, and everyone in them shares one server. Others stand almost empty.",
    ],
    task:
      "Make it busier: move the load. The columns first have to fill up; that takes about three task times. Then watch " +
      "them drift further apart.",
    theory:
      "Under random routing the number of tasks in a pool has a Poisson law (the usual law for counts of random " +
      "arrivals), so its spread is the square root of the load, however many pools there are.",
    labels: ["Sec. 2", "Fig. 5"],
    controls: ["load"],
    metric: "spread",
    start: { lanes: [lane("random")], seed: TYPICAL, speed: 0.2, time: 6, actions: averagesFrom(4) },
  },
  {
    id: "choices",
    short: "Two choices",
    title: "Look at two, take the emptier",
    text: [
      "Before it places a task, the dispatcher asks two pools how busy they are (pink triangles) and takes the emptier " +
        "one. Above, the same tasks go to a random pool.",
      "A little looking goes a long way: the tallest columns are gone. But every task now costs four messages, two " +
        "questions and two answers, and has to wait for them.",
    ],
    task:
      "Change the number of choices. One choice is random routing, but still costs two messages, as it asks the pool. " +
      "More choices cost more.",
    theory:
      "With two choices, taller columns become rarer much faster than under random routing. Each choice costs two " +
      "messages per task.",
    formula:
      "In a large system with d choices, the share of pools with at least i tasks is at most load / i times the d-th " +
      "power of the share with at least i - 1.",
    labels: ["Fig. 5"],
    controls: ["choices"],
    metric: "spread",
    start: { lanes: [lane("random"), lane("power-of-d")], seed: TYPICAL, speed: 0.15, time: 6, actions: averagesFrom(4) },
  },
  {
    id: "jsq",
    short: "Shortest queue",
    title: "Ask everyone, and the price of it",
    text: [
      "Join the shortest queue, the least connections of your proxy: the dispatcher knows how many tasks every pool " +
        "has and always takes the emptiest. The columns stay almost as even as whole tasks allow.",
      "The price: it must know the count of every pool, and so hear of every task that ends (pink triangles). With 1,000 " +
        "pools these are 1,000 numbers that are always up to date. Tokens, in the next scene, are two bits per pool.",
    ],
    task: "Raise the number of pools: the load stays even, but there are more counts to keep up to date.",
    theory:
      "The load is balanced when every pool has the load rounded down, or one task more. In a large system, joining " +
      "the shortest queue gets there.",
    labels: ["eq. (1)"],
    controls: ["pools"],
    metric: "spread",
    start: { lanes: [lane("jsq")], load: 5.5, initial: 5, speed: 0.15, time: 4, actions: averagesFrom(3) },
  },
  {
    id: "tokens",
    short: "Tokens",
    title: "Let the pools speak up",
    text: [
      "Turn it around: do not ask, let them report. A pool with fewer tasks than the threshold gives the dispatcher a " +
        "green token, a disc. A pool exactly at the threshold gives a yellow one, a diamond. A busier pool stays silent.",
      "A task goes to a pool with a green token, else to one with a yellow token, else anywhere. The dispatcher " +
        "knows no counts, only the tokens: two bits per pool. It gets about as many messages as in the last scene.",
    ],
    task: "Step from event to event: follow one task, the token it uses, and the token that comes back.",
    theory:
      "A task causes at most two messages. In a large system, a threshold at the load rounded down balances the load " +
      "as well as joining the shortest queue.",
    labels: ["Sec. 2.1", "Thm 2"],
    controls: ["step"],
    metric: "spread",
    start: { lanes: [lane("threshold", { threshold: 5 })], load: 5.5, initial: 5, pools: 16, speed: 0.08, time: 4, actions: averagesFrom(3) },
  },
  {
    id: "wrong",
    short: "Wrong threshold",
    title: "The wrong threshold",
    text: [
      "Everything hangs on one number. Set too high, almost every pool is green, so green says nothing: tasks go to any " +
        "of them. Set too low, no pool has a token, and tasks go to random pools again.",
      "The marks beside the columns show what the mathematics predicts for the threshold that you chose.",
    ],
    task: "Drag the blue line up and down (or use the slider). Where are the columns even?",
    theory:
      "Only the load rounded down, here 5, balances the load: above it, pools follow a Poisson law cut off at the " +
      "threshold, and below it one that starts above the threshold. One step off costs little (a spread of about 0.8 " +
      "instead of 0.5), four steps up cost much (2.0).",
    labels: ["Ex. 1", "Ex. 2", "Cor. 1"],
    controls: ["threshold"],
    metric: "spread",
    start: { lanes: [lane("threshold", { threshold: 9 })], load: 5.5, initial: 5, pools: 60, speed: 0.5, time: 4, actions: averagesFrom(3) },
  },
  {
    id: "learning",
    short: "Learning",
    title: "Learn it, from the tokens alone",
    text: [
      "The dispatcher is never told the load. But the tokens show it: if hardly a pool has a token left, the threshold is too " +
        "low, and it goes up by one. It goes down by one when at most a share alpha of the pools, here 0.92, is at or " +
        "above it.",
      "The upper system learns. The lower one is yours: both start empty, at threshold 0, with the same tasks.",
    ],
    task: "Race the learner: drag the lower line to where you think it belongs, before the upper one gets there.",
    theory:
      "In a large system that starts empty, with a load of 5.5, the threshold settles at 5 within ln(5.5 / 0.5) = 2.4 " +
      "average task lengths. With so few pools it still flickers by one; with more pools it stops.",
    labels: ["Sec. 4.1", "Thm 6", "Prop. 7"],
    controls: ["restart"],
    metric: "threshold",
    start: {
      lanes: [lane("threshold", { alpha: "0.92" }), lane("threshold")],
      load: 5.5,
      pools: 100,
      speed: 0.3,
      actions: averagesFrom(5),
    },
  },
  {
    id: "demand",
    short: "Demand",
    title: "When demand changes",
    text: [
      "The evening comes, and twice as many people call. A threshold that was right this morning is now far too low.",
      "The upper system learns, the lower one keeps what was best at the start.",
    ],
    task: "Press Double the load. Then halve it again.",
    theory:
      "With alpha above L / (L + 1), the threshold settles at most one above the load rounded down, for every load up " +
      "to L: 0.92 serves all loads up to 11. One too high costs little.",
    labels: ["eq. (13)", "Fig. 6"],
    controls: ["demand"],
    metric: "threshold",
    start: {
      lanes: [lane("threshold", { alpha: "0.92", threshold: 5 }), lane("threshold", { threshold: 5 })],
      load: 5.5,
      initial: 5,
      pools: 100,
      speed: 0.4,
      time: 4,
      actions: averagesFrom(3),
    },
  },
  {
    id: "late",
    short: "Late messages",
    title: "Messages take time",
    text: [
      "In a network nothing arrives at once. While a message travels, the pool that sent it changes, and the dispatcher " +
        "acts on old news. It helps itself: it adds what it has sent and not yet heard of.",
      "Watch all three policies with the same delay. Now tokens and tasks are drawn where they really are.",
    ],
    task: "Increase the delay. Which policy suffers most?",
    theory:
      "The paper's messages arrive at once, and so its theorems hold at delay 0; what late messages cost is measured " +
      "here, not predicted.",
    labels: ["Sec. 2.1"],
    controls: ["delay"],
    metric: "spread",
    start: {
      lanes: [lane("threshold", { alpha: "0.92", threshold: 5 }), lane("jsq"), lane("power-of-d")],
      load: 5.5,
      initial: 5,
      pools: 30,
      speed: 0.1,
      time: 4,
      delay: 0.1,
      actions: averagesFrom(3),
    },
  },
  {
    id: "sandbox",
    short: "Sandbox",
    title: "Sandbox",
    text: [
      "Everything at once: up to four policies side by side, on the same arrivals. Click a column to kill a pool; its " +
        "tasks come back as new ones. Click it again to revive it.",
      "A kill hits the same pool in all systems; the button takes the fullest one of the first. The even share is that of " +
        "the pools that are left.",
    ],
    task: "Find a setting where the learner loses, copy the link, and send it to a friend.",
    theory:
      "Whatever the policy, the mean number of tasks per pool approaches the load; all that a policy can change is how " +
      "evenly they are spread.",
    labels: ["Lem. 1", "Fig. 5"],
    controls: ["pools", "load", "delay", "lanes", "demand", "kill", "seed"],
    metric: "spread",
    start: {
      lanes: [lane("threshold", { alpha: "0.92" }), lane("jsq"), lane("power-of-d"), lane("random")],
      load: 5.5,
      pools: 100,
      speed: 1,
      actions: averagesFrom(8),
    },
  },
];

/**
 * The scene with this id; the first one if there is none.
 * @param {string} id
 */
export function sceneOf(id) {
  return SCENES.find((scene) => scene.id === id) ?? SCENES[0];
}

/**
 * A fresh state at the beginning of a scene; null if there is no such scene.
 * @param {string} id
 * @returns {State | null}
 */
export function startOf(id) {
  const scene = SCENES.find((each) => each.id === id);
  if (scene === undefined) return null;
  const { start } = scene;
  return {
    ...BASE,
    ...start,
    scene: scene.id,
    lanes: (start.lanes ?? []).map((each) => ({ ...each })),
    actions: (start.actions ?? []).map((each) => ({ ...each })),
  };
}
