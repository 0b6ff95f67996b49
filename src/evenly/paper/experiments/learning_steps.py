"""The learning rule, event by event: what the threshold did, and what the paper's text asks for.

The rule is written here once more, from the text alone and on fractions, so that neither the kernel nor the
objects of `evenly.core` judge themselves.

Paper: Sec. 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from evenly.core import ThresholdPolicy
from evenly.sim.reference import ReferenceSimulation
from evenly.sim.scenario import Scenario
from evenly.sim.simulation import Simulation


@dataclass(frozen=True)
class Step:
    """An event: pools with at least i tasks before and after it, the threshold before it, and its change.

    `green` and `yellow` are the numbers of tokens that the dispatcher holds right before it.
    """

    arrival: bool
    before: Sequence[int]
    after: Sequence[int]
    threshold: int
    change: int
    green: int = 0
    yellow: int = 0


def reaching(at_least: Sequence[int], tasks: int) -> int:
    """Return the number of pools with at least `tasks` tasks."""
    return at_least[tasks] if tasks < len(at_least) else 0


def rises(at_least: Sequence[int], threshold: int) -> bool:
    """Return True if all pools but at most one have more tasks than the threshold."""
    return reaching(at_least, threshold + 1) >= at_least[0] - 1


def falls(at_least: Sequence[int], threshold: int, alpha: Fraction) -> bool:
    """Return True if the fraction of pools with at least as many tasks as the threshold is at most alpha."""
    return Fraction(reaching(at_least, threshold), at_least[0]) <= alpha


def due(at_least: Sequence[int], threshold: int, alpha: Fraction) -> int:
    """Return the change of the threshold that a state asks for.

    Paper: Sec. 4.1; if both rules apply, they cancel, as in the equation of App. B.1.
    """
    return int(rises(at_least, threshold)) - int(falls(at_least, threshold, alpha))


@dataclass
class StateReview:
    """Counts of rises, falls and wrong moves of the threshold, judged by the states.

    `both` counts arrivals where both rules apply and cancel, `hindsight` those where the state right after the
    arrival asks for something else.
    """

    rises: int = 0
    falls: int = 0
    both: int = 0
    hindsight: int = 0
    wrong: int = 0

    def add(self, steps: Iterable[Step], alpha: Fraction) -> None:
        """Compare each event with the rule."""
        for step in steps:
            asked = 0
            if step.arrival:
                up, down = rises(step.before, step.threshold), falls(step.before, step.threshold, alpha)
                asked = int(up) - int(down)
                self.both += up and down
                self.hindsight += due(step.after, step.threshold, alpha) != asked
            self.rises += step.change > 0
            self.falls += step.change < 0
            self.wrong += step.change != asked


@dataclass
class TokenReview:
    """Counts of arrivals where the dispatcher's tokens do not explain what the threshold did.

    `wrong` judges by the rule "up with at most one yellow token", `by_the_letter` by the paper's words: up if
    there is no yellow token, or would be none after the dispatch. `unlike` counts arrivals where the tokens do not
    match the pools' tasks.
    """

    arrivals: int = 0
    wrong: int = 0
    by_the_letter: int = 0
    unlike: int = 0

    def add(self, steps: Iterable[Step], alpha: Fraction) -> None:
        """Compare each arrival with both rules. In both, many green tokens lower the threshold."""
        for step in steps:
            if step.arrival:
                pools = step.before[0]
                up, down = step.yellow <= 1, step.green >= (1 - alpha) * pools
                # Green tokens are used first, and their pool is then at most at the threshold: it stays yellow.
                used = int(step.green == 0 and step.yellow > 0)
                called = [pools - reaching(step.before, step.threshold + more) for more in (0, 1)]
                self.arrivals += 1
                self.wrong += step.change != int(up) - int(down)
                self.by_the_letter += step.change != int(step.yellow == used) - int(down)
                self.unlike += [step.green, step.yellow] != called


def kernel_steps(scenario: Scenario, seed: np.random.SeedSequence, events: int) -> Iterator[Step]:
    """Yield the events of the compiled kernel, one call per event."""
    simulation = Simulation(scenario, seed)
    before, threshold, arrivals = simulation.at_least.tolist(), scenario.initial_threshold, 0
    for _ in range(events):
        simulation.advance(math.inf, max_events=1)
        after, state = simulation.at_least.tolist(), simulation.state
        now, count = int(state["threshold"]), int(state["arrivals"])
        yield Step(count > arrivals, before, after, threshold, now - threshold)
        before, threshold, arrivals = after, now, count


def core_steps(scenario: Scenario, seed: np.random.SeedSequence, events: int) -> Iterator[Step]:
    """Yield the events of the dispatcher and pools of `evenly.core`, with the tokens that the dispatcher holds."""
    simulation = ReferenceSimulation(scenario, seed)
    policy = cast(ThresholdPolicy, simulation.policy)
    before = simulation.at_least()
    for _ in range(events):
        threshold, arrivals = policy.threshold, simulation.arrivals
        green, yellow = len(policy.dispatcher.green), len(policy.dispatcher.yellow)
        simulation.step()
        after, change = simulation.at_least(), policy.threshold - threshold
        yield Step(simulation.arrivals > arrivals, before, after, threshold, change, green, yellow)
        before = after
