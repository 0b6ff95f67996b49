"""Replay the sessions of a log under one policy, and measure between stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenly.sim.given import GivenSessions
from evenly.sim.scenario import Scenario
from evenly.sim.simulation import Simulation, Tick
from evenly.sim.tally import Averages, Tally, averages

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A replay: its averages over the window, and integrals from time 0 up to each stop.

    fullest: time integral of the sessions on the fullest server.
    over: time in which the fullest server has more sessions than the limit; 0 without one.
    """

    scenario: Scenario
    window: Tally
    averages: Averages
    crowded_share: float
    final_threshold: int | None
    stops: Floats
    spread: Floats
    fullest: Floats
    sessions: Floats
    over: Floats

    def means(self, integral: Floats) -> Floats:
        """Return the averages between stops of one of the integrals."""
        return np.asarray(np.diff(integral) / np.diff(self.stops))


def replay(
    scenario: Scenario,
    given: GivenSessions,
    *,
    seed: int,
    stops: Sequence[float],
    limit: int | None = None,
    observed: bool = False,
    tick: Tick | None = None,
) -> Replay:
    """Replay the sessions up to the scenario's horizon. The warm-up and the horizon are stops as well.

    The random numbers are those of the first replication of a simulation with this seed.
    """
    simulation = Simulation(scenario, np.random.SeedSequence(seed, spawn_key=(0,)), given=given, observed=observed)
    warmup, horizon = scenario.warmup, scenario.horizon
    times = sorted({0.0, warmup, horizon, *(stop for stop in stops if 0 < stop < horizon)})
    rows: list[tuple[float, float, float, float]] = []
    first = last = simulation.tally()
    crowded = 0.0
    for time in times:
        simulation.advance(time, tick)
        last = simulation.tally()
        if time == warmup:
            first, crowded = last, simulation.crowded
        rows.append(_row(last, limit))
    window = last - first
    means = averages(window, scenario.pools)
    threshold = int(simulation.state["threshold"])
    spread, fullest, sessions, over = np.array(rows).T
    total = means.mean_tasks * scenario.pools * window.time
    return Replay(
        scenario=scenario,
        window=window,
        averages=means,
        crowded_share=min((simulation.crowded - crowded) / total, 1.0) if total > 0 else 0.0,
        final_threshold=threshold if threshold >= 0 else None,
        stops=np.array(times),
        spread=spread,
        fullest=fullest,
        sessions=sessions,
        over=over,
    )


def _row(tally: Tally, limit: int | None) -> tuple[float, float, float, float]:
    """Return the integrals up to a stop: spread, fullest server, sessions, and the time above the limit."""
    levels = np.arange(tally.max_time.size)
    over = 0.0 if limit is None else float(tally.max_time[limit + 1 :].sum())
    return tally.spread, float(levels @ tally.max_time), float(tally.at_least[1:].sum()), over
