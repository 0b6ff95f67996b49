/**
 * What the paper's statements say, in the words of docs/paper-map.md: a test keeps them the same.
 *
 * @type {Record<string, string>}
 */
export const STATEMENTS = {
  "Sec. 2": "the model: pools, arrivals, exponential tasks",
  "Sec. 2.1": "the threshold policy and its tokens, at most two messages per task",
  "eq. (1)": "the balanced occupancy q*",
  "Lem. 1": "the equation for the mass",
  "Thm 2": "floor(load) is fluid-optimal",
  "Ex. 1": "equilibrium of a large threshold, Erlang-B",
  "Ex. 2": "equilibrium of a small threshold, a birth-death process",
  "Cor. 1": "no other threshold is fluid-optimal (except below load 1)",
  "Sec. 4.1": "the learning rule",
  "Thm 6": "the threshold settles",
  "Prop. 7": "how soon the threshold settles, eq. (15)",
  "eq. (13)": "how to set alpha",
  "Fig. 5": "the resources that tasks receive under four policies",
  "Fig. 6": "a varying demand, and the threshold that follows it",
};
