"""Small systems simulated event by event, with the objects of `evenly.core` and with the compiled kernel.

Paper: Sec. 2.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import cast

import numpy as np

from evenly.core import ThresholdPolicy
from evenly.paper.experiments.lab import Lab
from evenly.sim import Scenario
from evenly.sim.reference import ReferenceSimulation
from evenly.sim.simulation import Simulation
from evenly.theory.balance import FloatArray

POOLS = 20
CORE, KERNEL = "core", "kernel"
WATCHED = (  # the scenarios in words, for reports
    f"{POOLS} pools observed event by event, in the dispatcher and pools of the core and in the compiled kernel: "
    "thresholds 3, 5 and 6 at load 5.5, and one that learns (alpha 0.8) while the load changes from 5.5 to 9 and "
    "2. "
)


@dataclass(frozen=True)
class Placement:
    """The pool that a task was sent to, among the `candidates` pools that the policy allows.

    `allowed` is False if the pool is not one of them. Ordered by tasks, it comes after `before` candidates and is
    one of `width` with equally many tasks. `number` is its rank by pool number, or None for the kernel, which does
    not number its pools.
    """

    case: str
    allowed: bool
    candidates: int
    before: int
    width: int
    number: int | None = None


@dataclass(frozen=True)
class Event:
    """An arrival (with its placement) or a departure, and its effects. Only the core has tokens to record."""

    placement: Placement | None
    messages: int
    resync: int
    step: int  # of the threshold
    tokens: int = 0
    honest: bool = True  # the tokens match the tasks


def candidates(tasks: Sequence[int], threshold: int) -> tuple[str, list[int]]:
    """Return the case of the policy, and the pools that a task may go to, ordered by their tasks.

    Paper: Sec. 2.1, the three cases of the policy.
    """
    order = sorted(range(len(tasks)), key=lambda pool: (tasks[pool], pool))
    below = [pool for pool in order if tasks[pool] < threshold]
    at = [pool for pool in order if tasks[pool] == threshold]
    return ("below", below) if below else ("at", at) if at else ("anywhere", order)


def scenarios(lab: Lab) -> dict[str, Scenario]:
    """Return systems whose threshold is too small, right and too large, and one that learns a varying load."""
    stay = lab.pick(5, 1)
    return {
        "small": Scenario(pools=POOLS, load=5.5, threshold=3, initial_tasks=5.5),
        "right": Scenario(pools=POOLS, load=5.5, threshold=5, initial_tasks=5.5),
        "large": Scenario(pools=POOLS, load=5.5, threshold=6),
        "learning": Scenario(pools=POOLS, alpha="0.8", schedule=f"0:5.5,{stay}:9,{2 * stay}:2"),
    }


def recorded(lab: Lab, where: str) -> dict[str, list[Event]]:
    """Return all events of the scenarios, from the objects of the core or from the kernel."""
    watch = watch_core if where == CORE else watch_kernel
    seed = lab.seed_for(f"events of the {where}")
    return lab.once(
        f"events of the {where}",
        lambda: {
            name: list(watch(scenario, np.random.SeedSequence([seed, index]), lab.pick(5000, 900)))
            for index, (name, scenario) in enumerate(scenarios(lab).items())
        },
    )


def all_events(lab: Lab, where: str) -> list[Event]:
    """Return the events of all scenarios together."""
    return list(chain.from_iterable(recorded(lab, where).values()))


def watch_core(scenario: Scenario, seed: np.random.SeedSequence, events: int) -> Iterator[Event]:
    """Step through the reference simulation, whose dispatcher and pools are those of `evenly.core`."""
    simulation = ReferenceSimulation(scenario, seed)
    policy = cast(ThresholdPolicy, simulation.policy)
    tasks, threshold, sent = simulation.tasks(), policy.threshold, simulation.messages
    for _ in range(events):
        arrivals = simulation.arrivals
        simulation.step()
        now, told = simulation.tasks(), simulation.messages
        place = None
        if simulation.arrivals > arrivals:
            pool = next(pool for pool in range(POOLS) if now[pool] > tasks[pool])
            place = _placement(tasks, threshold, pool)
        green, yellow = policy.dispatcher.green, policy.dispatcher.yellow
        level = policy.threshold
        yield Event(
            placement=place,
            messages=told["green"] + told["yellow"] - sent["green"] - sent["yellow"],
            resync=told["resync"] - sent["resync"],
            step=level - threshold,
            tokens=len(green) + len(yellow),
            honest=set(green) == {pool for pool in range(POOLS) if now[pool] < level}
            and set(yellow) == {pool for pool in range(POOLS) if now[pool] <= level},
        )
        tasks, threshold, sent = now, level, told


def watch_kernel(scenario: Scenario, seed: np.random.SeedSequence, events: int) -> Iterator[Event]:
    """Step through the kernel. It only counts pools, so pools with equally many tasks look the same."""
    simulation = Simulation(scenario, seed)
    state = simulation.state
    for _ in range(events):
        before, threshold = simulation.at_least, int(state["threshold"])
        counts = {name: int(state[name]) for name in ("arrivals", "green", "yellow", "resync")}
        simulation.advance(math.inf, max_events=1)
        place = None
        if state["arrivals"] > counts["arrivals"]:
            after = simulation.at_least
            level = int(np.flatnonzero(after - np.pad(before, (0, after.size - before.size)))[0]) - 1
            tasks = np.repeat(np.arange(before.size), -np.diff(before, append=0)).tolist()
            place = _placement(tasks, threshold, tasks.index(level), tasks.count(level))
        yield Event(
            placement=place,
            messages=int(state["green"] + state["yellow"]) - counts["green"] - counts["yellow"],
            resync=int(state["resync"]) - counts["resync"],
            step=int(state["threshold"]) - threshold,
        )


def _placement(tasks: Sequence[int], threshold: int, pool: int, alike: int | None = None) -> Placement:
    """Describe the placement: to a given pool, or to one of `alike` pools with equally many tasks."""
    case, pools = candidates(tasks, threshold)
    if pool not in pools:
        return Placement(case, False, len(pools), 0, 0)
    number = sum(other < pool for other in pools) if alike is None else None
    return Placement(case, True, len(pools), pools.index(pool), alike or 1, number)


def choices(lab: Lab, where: str, case: str) -> list[FloatArray]:
    """Return the ranks of the chosen pools in a case: by tasks and, in the core, by pool number too."""
    found = [
        event.placement for event in all_events(lab, where) if event.placement and event.placement.case == case
    ]
    orders = [found]
    if where == CORE:
        orders.append([replace(place, before=place.number) for place in found if place.number is not None])
    seed = lab.seed_for(f"places in the {where}, {case}")
    return [uniforms(order, seed) for order in orders]


def uniforms(placements: Sequence[Placement], seed: int) -> FloatArray:
    """Turn placements into numbers that are independent and uniform if every candidate was equally likely.

    A pool that is one of `width` alike gets a random rank among them. Choices with one candidate are left out.
    """
    telling = [place for place in placements if place.allowed and place.candidates > 1]
    places = np.array([(place.before, place.width, place.candidates) for place in telling], float).reshape(-1, 3)
    own = np.random.default_rng(seed).random(len(telling))
    return np.asarray((places[:, 0] + own * places[:, 1]) / places[:, 2])


def distance_from_uniform(values: FloatArray) -> float:
    """Return the Kolmogorov distance of the values from the uniform law on [0, 1], or 1 if there are none."""
    if not values.size:
        return 1.0
    ordered = np.sort(values)
    steps = np.arange(ordered.size + 1) / ordered.size
    return float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])))
