"""Shared by the tests of the simulator: scenarios of every kind, the reference's path, statistical bounds."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from _pytest.mark import ParameterSet
from numpy.typing import ArrayLike, NDArray

from evenly.policies import find_policy
from evenly.sim import Result, Scenario
from evenly.sim.reference import CoreSystem, ReferenceSimulation
from evenly.sim.tally import Averages, averages
from tests.sim.session_reference import SessionReference

FALSE_ALARM = 1e-9  # of a single statistical comparison; a file makes fewer than a thousand of them

LAWS = [
    "deterministic",
    "erlang:stages=3",
    "hyperexponential:cv=4",
    "coxian:means=0.5/4,next=0.2",
    "lognormal:cv=4",
    "weibull:shape=0.5",
    "pareto:shape=1.5,ratio=1000",
]  # of service
STEPS: dict[str, dict[str, Any]] = {
    "threshold": {"alpha": 0.8, "initial": 1.5},
    "jsq": {"capacity": 5, "service_rate": 1.5},
    "power-of-d": {"service_rate": 1.5},
    "random": {},
    "round-robin": {"initial": 2},
    "jiq": {"capacity": 5},
    "jbt": {"service_rate": 1.5},
    "pull": {"capacity": 5},
}
SWINGS: dict[str, dict[str, Any]] = {
    "threshold": {"alpha": "0.8", "capacity": 6},
    "jsq": {"service_rate": 2.5},
    "power-of-d": {"choices": 3, "initial": 1.25, "service_rate": 1.5},
    "random": {"service_rate": 1.5, "capacity": 5},
    "round-robin": {"capacity": 4, "service_rate": 2.5},
    "jiq": {"service_rate": 0.5, "initial": 2},
    "jbt": {"initial": 2.5, "service_rate": 1.5},
    "pull": {"capacity": 8, "initial": 1.5},
}
SIZED: dict[str, dict[str, Any]] = {
    "greedy": {"policy": "greedy-utility", "service_rate": 2.5, "initial": 2.75},
    "greedy, sqrt": {"policy": "greedy-utility", "utility": "sqrt"},
    "weighted least": {"policy": "weighted-least", "initial": [0, 1, 9, 3, 0, 0, 5, 2, 2, 0, 1, 7]},
    "weighted round-robin": {"policy": "weighted-round-robin", "initial": 1.5},
    "fixed index": {"policy": "threshold-utility"},
    "index above": {"policy": "threshold-utility", "threshold": 20, "initial": 4.25},
    "learning": {"policy": "threshold-utility", "alpha": "0.8"},
    "learning, rate": {"policy": "threshold-utility", "alpha": "0.6", "utility": "rate", "initial": 6},
    "jsq": {"policy": "jsq"},
    "blind learning": {"policy": "threshold", "alpha": "0.8"},
    "random": {"policy": "random"},
}

# Every policy with and without capacity; steps, pauses and waves of demand; odd sizes; levels past the first
# allocation. The last phase always has demand, so that there is a next event. `by_tier` says which run when.
OPTIONS: dict[str, dict[str, Any]] = {
    "threshold fixed": {},
    "threshold zero": {"threshold": 0},
    "threshold above the load": {"threshold": 6},
    "threshold with capacity": {"threshold": 2, "capacity": 4, "initial": [0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 0]},
    "learning": {"alpha": 0.8},
    "learning, both rules at once": {"alpha": 0.95},
    "learning with capacity": {"alpha": 0.8, "capacity": 4, "service_rate": 0.3},
    "learning from above": {"alpha": "0.75", "threshold": 9, "initial": 7.5},
    "learning past the first levels": {"pools": 2, "load": 70.0, "alpha": 0.4},
    "learning with one pool": {"pools": 1, "capacity": 5, "alpha": 0.5},
    "jsq": {"policy": "jsq", "service_rate": 2.5},
    "jsq with capacity": {"policy": "jsq", "capacity": 3},
    "power of two": {"policy": "power-of-d", "initial": 1.25},
    "power of five with capacity": {"policy": "power-of-d", "choices": 5, "capacity": 4},
    "power of all": {"policy": "power-of-d", "choices": 12},
    "power of one": {"policy": "power-of-d", "choices": 1},
    "random": {"policy": "random"},
    "random with capacity": {"policy": "random", "capacity": 4, "service_rate": 2.5},
    "random past the first levels": {"policy": "random", "pools": 3, "load": 84.0},
    "round-robin": {"policy": "round-robin", "initial": 3},
    "round-robin with capacity": {"policy": "round-robin", "capacity": 4},
    "jiq": {"policy": "jiq", "initial": 2, "service_rate": 0.7},
    "jiq with capacity": {"policy": "jiq", "capacity": 5},
    "jbt": {"policy": "jbt", "threshold": 3, "initial": 2.5},
    "jbt with capacity": {"policy": "jbt", "capacity": 5},
    "jbt at its capacity": {"policy": "jbt", "threshold": 4, "capacity": 4},
    "pull": {"policy": "pull", "capacity": 4, "initial": 1.5},
    "pull with room": {"policy": "pull", "capacity": 7, "initial": [7, 0, 3, 1, 1, 5, 6, 2, 0, 7, 4, 4]},
    "pull with one place": {"policy": "pull", "capacity": 1, "load": 0.9},
    **{f"sizes, {name}": {"pools": 12, "sizes": "6*1,4*4,2*2.5", **more} for name, more in SIZED.items()},
    "sizes, learning with one size": {"policy": "threshold-utility", "alpha": 0.8},
    "sizes, past the first levels": {
        "policy": "threshold-utility",
        "alpha": 0.4,
        "pools": 3,
        "sizes": "2*1,1*3",
        "load": 60.0,
    },
    "sizes, many tasks in turn": {
        "policy": "weighted-round-robin",
        "pools": 3,
        "sizes": "2*1,1*3",
        "load": 400.0,
        "initial": 330,
    },
    "waves, sizes": {
        "policy": "threshold-utility",
        "alpha": "0.7",
        "load": None,
        "pools": 12,
        "sizes": "8*1,4*4",
        "schedule": "0:3,2:0,9:6~3/2",
    },
    **{
        f"steps, {policy}": {"policy": policy, "load": None, "schedule": "0:3,2:0,14.5:6,17:0.5", **more}
        for policy, more in STEPS.items()
    },
    **{
        f"waves, {policy}": {
            "policy": policy,
            "load": None,
            "schedule": "0:3~3/4,6:0,9:6~3/2.5,15:2.5~0.5/4",
            **more,
        }
        for policy, more in SWINGS.items()
    },
}
# Together these have each policy with and without capacity and tasks at the start, at another service rate and
# under waves, between which there are steps; each kernel under each kind of demand; and each way in which its
# books grow. The others only run in `make full`.
CORE = (
    "threshold fixed",
    "threshold with capacity",
    "learning with capacity",
    "learning from above",
    "learning past the first levels",
    "learning with one pool",
    "jsq",
    "power of five with capacity",
    "random past the first levels",
    "round-robin",
    "jiq",
    "jbt at its capacity",
    "pull with one place",
    "sizes, greedy",
    "sizes, fixed index",
    "sizes, weighted least",
    "sizes, weighted round-robin",
    "sizes, learning, rate",
    "sizes, past the first levels",
    "waves, sizes",
    "steps, threshold",
    "steps, jsq",
    "steps, jiq",
    *(f"waves, {policy}" for policy in SWINGS),
)
# Every loop under every kind of demand, with and without a threshold that moves and losses.
LOOPS = (
    "learning",
    "threshold with capacity",
    "jsq",
    "power of five with capacity",
    "round-robin",
    "jbt at its capacity",
    "sizes, weighted least",
    "sizes, learning, rate",
    "waves, sizes",
    "steps, threshold",
    "steps, jiq",
    "waves, threshold",
    "waves, jsq",
    "waves, pull",
)
LONG = "sizes, many tasks in turn"  # its path takes half a minute to follow
STEADY_OPTIONS = {name: options for name, options in OPTIONS.items() if "schedule" not in options and name != LONG}
ONE_SIZE = {
    name: options
    for name, options in OPTIONS.items()
    if "sizes" not in options and not find_policy(options.get("policy", "threshold")).sized
}


def by_tier(names: Iterable[str], kept: Sequence[str] = CORE) -> list[ParameterSet]:
    """Return these systems as parameters; those that repeat the features of `kept` only run in `make full`."""
    return [pytest.param(name, marks=[] if name in kept else pytest.mark.full) for name in names]


def scenario_of(options: dict[str, Any], **more: Any) -> Scenario:  # noqa: ANN401
    return Scenario(**{"pools": 12, "load": 3.3, **options, **more})


def first_seed(seed: int, replication: int = 0) -> np.random.SeedSequence:
    """Return the seed that `simulate` gives to a replication."""
    return np.random.SeedSequence(seed, spawn_key=(replication,))


# --- the reference's path ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moment:
    """The reference from `time` on, until the next moment."""

    time: float
    tasks: tuple[int, ...]
    threshold: int | None
    messages: dict[str, int]
    arrivals: int
    lost: int


def reference_path(
    scenario: Scenario, seed: np.random.SeedSequence, *, mean_holding: bool = False
) -> list[Moment]:
    """Return every state of the reference from time 0 up to the horizon."""
    reference: ReferenceSimulation | SessionReference = SessionReference(scenario, seed)
    if scenario.memoryless:
        reference = ReferenceSimulation(scenario, seed, mean_holding=mean_holding)
    path = [_moment(reference)]
    while True:
        reference.step()
        if reference.time > scenario.horizon:
            return path
        path.append(_moment(reference))


def _moment(reference: CoreSystem) -> Moment:
    return Moment(
        reference.time,
        tuple(reference.tasks()),
        reference.threshold,
        reference.messages,
        reference.arrivals,
        reference.lost,
    )


def state_at(path: Sequence[Moment], time: float) -> Moment:
    return path[bisect_right(path, time, key=lambda moment: moment.time) - 1]


@dataclass(frozen=True)
class Piece:
    """A stretch of time in which nothing happens: its weight in the window, the state and the load."""

    weight: float
    state: Moment
    load: float


def pieces(scenario: Scenario, path: Sequence[Moment], since: float, until: float) -> list[Piece]:
    """Cut a window at every event and at every step of demand. The weights add up to 1."""
    cuts = {since, until, *(moment.time for moment in path), *(phase.start for phase in scenario.phases)}
    times = sorted(time for time in cuts if since <= time <= until)
    return [
        Piece((end - begin) / (until - since), state_at(path, begin), scenario.demand(begin))
        for begin, end in pairwise(times)
    ]


def average(window: Sequence[Piece], quantity: Callable[[Moment], float]) -> float:
    """Return the time average of a quantity over a window."""
    return math.fsum(piece.weight * quantity(piece.state) for piece in window)


def balanced_fraction(load: float, level: int) -> float:
    """Return q*(level) of the paper's eq. (1)."""
    if level <= math.floor(load):
        return 1.0
    return load - math.floor(load) if level == math.floor(load) + 1 else 0.0


def imbalance_of(tasks: Sequence[int], load: float) -> float:
    """Return the Euclidean distance between the occupancy and q*, level by level."""
    levels = range(max(*tasks, math.floor(load) + 1) + 1)
    gaps = (
        sum(count >= level for count in tasks) / len(tasks) - balanced_fraction(load, level) for level in levels
    )
    return math.sqrt(math.fsum(gap * gap for gap in gaps))


# --- comparisons of results --------------------------------------------------------------------------------


def means_of(result: Result) -> Averages:
    """Return the averages that a result shows one by one."""
    return averages(result.window, result.scenario.pools)


def flat(means: Averages) -> dict[str, NDArray[np.float64]]:
    """Return all averages by name, for comparisons."""
    levels = range(max(means.threshold_share, default=-1) + 1)
    return {
        **{name: np.array([value]) for name, value in means.scalars().items()},
        "pools_with_exactly": means.pools_with_exactly,
        "task_share": means.task_share,
        "max_tasks_distribution": means.max_tasks_distribution,
        "threshold_share": np.array([means.threshold_share.get(level, 0.0) for level in levels]),
    }


def assert_same_averages(one: Averages, two: Averages, rtol: float = 1e-9, *, but: Sequence[str] = ()) -> None:
    first, second = flat(one), flat(two)
    assert first.keys() == second.keys()
    for name, values in first.items():
        if name not in but:
            np.testing.assert_allclose(second[name], values, rtol=rtol, atol=1e-13, err_msg=name)


def comparable(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result's numbers without the one that depends on the machine."""
    return {name: value for name, value in result.items() if name != "seconds"}


# --- bounds with a stated false-alarm rate -----------------------------------------------------------------


def assert_mean(samples: ArrayLike, truth: float, what: str = "", slack: float = 1e-8) -> None:
    """Assert that the true value lies in the samples' Student interval at FALSE_ALARM.

    Samples are averages over thousands of mean task times, hence close to normal. `slack` is for rounding
    and truncation in the truth.
    """
    from scipy.stats import t

    values = np.asarray(samples, float)
    quantile = float(t.isf(FALSE_ALARM / 2, values.size - 1))
    width = quantile * float(values.std(ddof=1)) / math.sqrt(values.size)
    assert abs(values.mean() - truth) <= width + slack, f"{what}: {values.mean()} +- {width}, not {truth}"


def assert_chi_square(counts: ArrayLike, expected: ArrayLike) -> None:
    """Assert that Pearson's statistic is neither too large nor too small for these expected counts."""
    from scipy.stats import chi2

    observed, mean = np.asarray(counts, float), np.asarray(expected, float)
    assert mean.min() >= 25  # then the chi-square law is close
    statistic = float(((observed - mean) ** 2 / mean).sum())
    freedom = observed.size - 1
    assert chi2.isf(1 - FALSE_ALARM / 2, freedom) < statistic < chi2.isf(FALSE_ALARM / 2, freedom)


def assert_poisson(counts: ArrayLike, mean: float) -> None:
    """Assert independent Poisson counts: a Poisson sum, and an index of dispersion close to chi-square."""
    from scipy.stats import chi2, poisson

    values = np.asarray(counts, float)
    total = mean * values.size
    low, high = poisson.ppf(FALSE_ALARM / 2, total), poisson.isf(FALSE_ALARM / 2, total)
    assert low <= values.sum() <= high, f"{values.mean()} on average, not {mean}"
    dispersion = float(((values - values.mean()) ** 2).sum() / values.mean())
    freedom = values.size - 1
    assert chi2.isf(1 - FALSE_ALARM / 2, freedom) < dispersion < chi2.isf(FALSE_ALARM / 2, freedom)
