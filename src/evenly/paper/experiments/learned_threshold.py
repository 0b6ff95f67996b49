"""The learned threshold in a small and a larger system: one run over time, and the long run.

Paper: Sec. 5.1, Fig. 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from evenly.paper.experiments.inputs import (
    check_events,
    checked_alpha,
    checked_load,
    checked_time,
    different_whole_numbers,
    keep,
)
from evenly.paper.experiments.lab import Lab
from evenly.sim import Result, Scenario, Trajectory, simulate
from evenly.sim.limits import MAX_POOLS
from evenly.theory.inputs import MAX_LOAD
from evenly.theory.stability.predict import predict_stability
from evenly.theory.stability.result import Stability
from evenly.theory.tuning import Alpha

LOAD, ALPHA, SIZES = 2.9, "0.97", (100, 400)
POINTS = 201
WARMUP = 5.0  # from the balanced state; by then the variance of the number of tasks is off by exp(-10)
REPLICATIONS = 32
MAX_TIME = 10**7  # mean task times
_EVENTS = 1.5e8  # in a long run; 60,000 mean task times of 400 pools at load 2.9 have 1.4e8


@dataclass(frozen=True, kw_only=True)
class LearnedThreshold:
    """Parameters: systems of several sizes, which learn from threshold floor(load) and the balanced state.

    `horizon` is the length of the run in the picture, `long_run` the time over which shares are measured (default:
    60,000 mean task times, or fewer if these would take more than 1.5e8 events).
    """

    pools: tuple[int, ...] = SIZES
    load: float = LOAD
    alpha: Alpha = ALPHA
    horizon: float = 25.0
    long_run: float | None = None

    def __post_init__(self) -> None:
        keep(
            self,
            pools=different_whole_numbers("pools", self.pools, 1, MAX_POOLS),
            load=checked_load(self.load, MAX_LOAD),
            alpha=checked_alpha(self.alpha),
            horizon=checked_time("horizon", self.horizon, MAX_TIME),
        )
        if self.long_run is not None:
            keep(self, long_run=checked_time("long_run", self.long_run, MAX_TIME))
        for pools in self.pools:
            scenario(pools, self.load, self.alpha, self.horizon)
            check_events(pools, self.load, self.horizon + self.long_run_of(pools))

    def long_run_of(self, pools: int) -> float:
        """Return the time over which the shares of a system of this size are measured."""
        if self.long_run is not None:
            return self.long_run
        return min(60_000.0, _EVENTS / (2 * self.load * pools))


def of_paper(lab: Lab) -> LearnedThreshold:
    """Return the parameters of Fig. 3."""
    return LearnedThreshold(long_run=lab.pick(60_000.0, 4_800.0))


def scenario(pools: int, load: float, alpha: Alpha, horizon: float, warmup: float = 0.0) -> Scenario:
    """Return a system that learns, starting at the optimum and in the balanced state."""
    return Scenario(
        pools=pools,
        load=load,
        alpha=alpha,
        threshold=floor(load),
        initial_tasks=load,
        horizon=horizon,
        warmup=warmup,
    )


def long_run(lab: Lab, pools: int, load: float, alpha: Alpha, time: float) -> Result:
    """Simulate the long run of a learned threshold: `time` mean task times in all, in independent parts."""

    def work() -> Result:
        run = scenario(pools, load, alpha, WARMUP + time / REPLICATIONS, WARMUP)
        seed = lab.seed_for(f"long run {pools} {load} {alpha}")
        return simulate(run, replications=REPLICATIONS, seed=seed, mean_holding_times=True)

    return lab.once(("long run", pools, load, alpha, time), work)


def in_the_long_run(lab: Lab, setup: LearnedThreshold, pools: int) -> Result:
    """Simulate the long run of the system with `pools` pools."""
    return long_run(lab, pools, setup.load, setup.alpha, setup.long_run_of(pools))


def shown_run(lab: Lab, setup: LearnedThreshold, pools: int) -> Trajectory:
    """Simulate one run of the system with `pools` pools up to the horizon."""
    run = scenario(pools, setup.load, setup.alpha, setup.horizon)
    return lab.once(
        ("learned threshold", setup, pools), lambda: simulate(run, seed=lab.seed, points=POINTS).trajectories[0]
    )


def threshold_steps(run: Trajectory) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the times and values of a threshold: at the start, at each change and at the end."""
    times = np.concatenate([run.times[:1], run.change_times, run.times[-1:]])
    return times, np.concatenate([run.threshold[:1], run.change_thresholds, run.threshold[-1:]])


def prediction(lab: Lab, pools: int, load: float, alpha: str) -> Stability:
    """Predict the long run of a learned threshold."""
    return lab.once(
        ("stability", pools, load, alpha), lambda: predict_stability(pools=pools, load=load, alpha=alpha)
    )


def share_at(result: Result, *thresholds: int) -> NDArray[np.float64]:
    """Return the share of time at these thresholds, in each independent part."""
    return np.array([window.threshold_time[list(thresholds)].sum() / window.time for window in result.windows])


def share_elsewhere(result: Result, *thresholds: int) -> NDArray[np.float64]:
    """Return the share of time at all thresholds but these, in each independent part."""
    return np.array(
        [np.delete(window.threshold_time, list(thresholds)).sum() / window.time for window in result.windows]
    )


def share_above(result: Result, threshold: int) -> NDArray[np.float64]:
    """Return the share of time above a threshold, in each independent part."""
    return np.array([window.threshold_time[threshold + 1 :].sum() / window.time for window in result.windows])


def excursion_rate(result: Result) -> NDArray[np.float64]:
    """Return the excursions per mean task time, in each independent part.

    An excursion is two changes, if the threshold only takes two values.
    """
    return np.array([window.change_count / (2 * window.time) for window in result.windows])


def ratio_samples(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return samples whose mean is the ratio of the means, and whose error is that of the ratio to first order."""
    ratio = above.mean() / below.mean()
    return np.asarray(ratio + (above - ratio * below) / below.mean())
