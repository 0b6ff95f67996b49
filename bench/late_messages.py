"""Messages that take time: how fast they are simulated, and how even the pools are, compared with delayed JSQ."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import floor

import numpy as np

from bench.measure import Figure, Rows
from evenly.sim import Scenario, compare, with_policies
from evenly.sim.simulation import Simulation

POOLS, LOAD, DELAY = 500, 5.5, 0.01
POLICIES = {"threshold": 2.0, "jsq": None, "power-of-d": None, "random": None, "stale-reports": None}
GOAL, MOST_MESSAGES = 1.03, 1.1  # spread, compared with delayed JSQ; all messages per task
DELAYS = (0.001, 0.01, 0.05, 0.1)
SYSTEMS = ((10, "0.6"), (20, "0.8"), (32, "0.8"), (64, "0.8"), (100, "0.9"), (300, "0.9"), (1000, "0.9"))
LOADS = (1.5, 2.0, 2.9, 4.1, 5.5, 7.95, 9.7, 11.0, 12.25)
TASKS = 1e5  # of a run, times the scale
WINDOW = 8.0  # at least, times the scale
WARMUP = 20.0


def rate(policy: str, horizon: float, delay: float | str) -> float:
    """Return the events per second of a policy, from a balanced start."""
    alpha = "0.9" if policy == "threshold" else None
    scenario = Scenario(
        policy=policy, pools=POOLS, load=LOAD, alpha=alpha, delay=delay, initial_tasks=LOAD, horizon=1e6
    )
    simulation = Simulation(scenario, np.random.SeedSequence(1))
    simulation.advance(1.0)
    before = int(simulation.state["events"])
    started = time.perf_counter()
    simulation.advance(1.0 + horizon)
    return (int(simulation.state["events"]) - before) / (time.perf_counter() - started)


def speed(rounds: int, scale: float) -> Iterator[Figure]:
    """Measure the delayed kernel next to the one for messages that take no time."""
    horizon = 20.0 * scale
    for policy, goal in POLICIES.items():
        rows = Rows(
            rounds,
            lambda policy=policy: rate(policy, horizon, DELAY) / 1e6,  # type: ignore[misc]
            lambda policy=policy: rate(policy, horizon, f"exponential:{DELAY}") / 1e6,  # type: ignore[misc]
            lambda: rate("jsq", horizon, 0.0) / 1e6,
        )
        yield Figure(f"{policy}, delay {DELAY}", rows.median(0), "million events/s", goal)
        yield Figure(f"{policy}, exponential delay {DELAY}", rows.median(1), "million events/s", goal)
        if policy == "threshold":
            yield Figure("delayed / instant kernel", rows.ratio(0, 2), "times")


def compared(pools: int, alpha: str, load: float, delay: float | str, scale: float) -> tuple[float, float]:
    """Return the spread of the learning threshold compared with that of delayed JSQ, and its messages per task."""
    warmup = WARMUP * min(scale, 1.0)
    horizon = warmup + scale * max(WINDOW, TASKS / (pools * load))
    scenario = Scenario(
        pools=pools,
        load=load,
        alpha=alpha,
        threshold=floor(load),
        delay=delay,
        initial_tasks=load,
        warmup=warmup,
        horizon=horizon,
    )
    ours, jsq = compare(with_policies(scenario, ["threshold", "jsq"]), seed=3)
    return ours.spread / jsq.spread, ours.messages_per_task + ours.resync_per_task


def evenness(scale: float) -> Iterator[Figure]:
    """Measure the worst ratio and the most messages over all systems and loads, for each delay."""
    for delay in DELAYS:
        for written in (delay, f"exponential:{delay}"):
            found = [
                (*compared(pools, alpha, load, written, scale), f"{pools} pools, load {load}")
                for pools, alpha in SYSTEMS
                for load in LOADS
            ]
            worst, _, at = max(found)
            most = max(messages for _, messages, _ in found)
            yield Figure(f"worst spread / JSQ's, delay {written} ({at})", worst, "times", GOAL, at_least=False)
            what = f"most messages per task, delay {written}"
            yield Figure(what, most, "", MOST_MESSAGES, at_least=False)


def late_messages(rounds: int, scale: float) -> Iterator[Figure]:
    """Measure everything about messages that take time."""
    yield from speed(max(rounds // 3, 1), scale)
    yield from evenness(scale)
