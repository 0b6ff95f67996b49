"""Other service laws: how fast sessions are simulated, and which queue suits them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from bench.measure import Figure, Rows
from bench.queues import nanoseconds
from evenly.sim import Scenario
from evenly.sim.simulation import Simulation

POOLS, LOAD = 500, 5.5
LAWS = (
    "deterministic",
    "erlang:stages=3",
    "hyperexponential:cv=4",
    "lognormal:cv=4",
    "pareto:shape=1.5,ratio=1000",
)
POLICIES = ("threshold", "jsq", "power-of-d", "random", "round-robin", "jiq")
SIZES = "400*1,100*4"
GOAL = 5.0  # million events per second


def rate(
    policy: str,
    law: str,
    horizon: float,
    arrivals: str = "poisson",
    pools: int = POOLS,
    sizes: str | None = None,
) -> float:
    """Return the million events per second of a policy, from a balanced start."""
    scenario = Scenario(
        policy=policy,
        pools=pools,
        sizes=sizes,
        load=LOAD,
        alpha="0.93" if policy.startswith("threshold") else None,
        service=law,
        arrivals=arrivals,
        initial_tasks=LOAD,
        horizon=1e6,
    )
    simulation = Simulation(scenario, np.random.SeedSequence(1))
    simulation.advance(2.0)
    before = int(simulation.state["events"])
    started = time.perf_counter()
    simulation.advance(2.0 + horizon)
    return (int(simulation.state["events"]) - before) / (time.perf_counter() - started) / 1e6


def speed(rounds: int, scale: float) -> Iterator[Figure]:
    """Measure the session kernel."""
    horizon = 100.0 * scale
    for law in LAWS:
        rows = Rows(rounds, lambda law=law: rate("threshold", law, horizon))  # type: ignore[misc]
        yield Figure(f"threshold, {law}", rows.median(0), "million events/s", GOAL)
    for policy in POLICIES[1:]:
        rows = Rows(rounds, lambda policy=policy: rate(policy, "lognormal:cv=4", horizon))  # type: ignore[misc]
        yield Figure(f"{policy}, lognormal:cv=4", rows.median(0), "million events/s", GOAL)
    for policy in ("threshold-utility", "greedy-utility", "weighted-round-robin"):
        rows = Rows(rounds, lambda policy=policy: rate(policy, "lognormal:cv=4", horizon, sizes=SIZES))  # type: ignore[misc]
        yield Figure(f"{policy}, {SIZES}, lognormal:cv=4", rows.median(0), "million events/s", GOAL)
    bursty = "bursty:ratio=10,share=0.1,length=2"
    rows = Rows(rounds, lambda: rate("threshold", "lognormal:cv=4", horizon, bursty))
    yield Figure(f"threshold, lognormal:cv=4, {bursty}", rows.median(0), "million events/s", GOAL)
    rows = Rows(1, lambda: rate("threshold", "lognormal:cv=4", scale, pools=100_000))
    yield Figure("threshold, lognormal:cv=4, 100,000 pools", rows.median(0), "million events/s")


def queues(rounds: int, scale: float) -> Iterator[Figure]:
    """Compare the queues: take out the session that ends next, and put in another."""
    steps = int(500_000 * scale)
    for size in (2750, 275_000):
        for law in ("hyperexponential:cv=1", "lognormal:cv=4"):
            rows = Rows(
                rounds,
                lambda law=law, size=size: nanoseconds("four", law, size, steps),  # type: ignore[misc]
                lambda law=law, size=size: nanoseconds("two", law, size, steps),  # type: ignore[misc]
                lambda law=law, size=size: nanoseconds("calendar", law, size, steps),  # type: ignore[misc]
            )
            at = f"{size:,} sessions, {law}"
            yield Figure(f"heap with four children, {at}", rows.median(0), "ns")
            yield Figure(f"heap with two children / with four, {at}", rows.ratio(1, 0), "times")
            yield Figure(f"calendar queue / heap with four children, {at}", rows.ratio(2, 0), "times")
    size = int(4000 * scale)
    rows = Rows(
        rounds,
        lambda: nanoseconds("four", "deterministic", size, size),
        lambda: nanoseconds("calendar", "deterministic", size, size),
    )
    what = f"calendar queue / heap with four children, {size:,} sessions that begin together, deterministic"
    yield Figure(what, rows.ratio(1, 0), "times")


def sessions(rounds: int, scale: float) -> Iterator[Figure]:
    """Measure everything about other service laws."""
    yield from speed(max(rounds // 3, 1), scale)
    yield from queues(max(rounds // 3, 1), scale)
