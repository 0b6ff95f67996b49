"""Systems on one probability space: the appendix's construction, event by event; the laws; what sizes share.

Statistical bounds have a false-alarm rate of 1e-9 each; there are a few hundred of them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim import Phase, Scenario, Trajectory, simulate
from evenly.sim.coupling import sizes as common_module
from evenly.sim.coupling.sizes import simulate_sizes
from evenly.theory.exact.law import solve_exact
from tests.sim.support import FALSE_ALARM, assert_chi_square, assert_poisson, imbalance_of
from tests.sim.test_streams import Xoshiro

ARRIVALS, SELECTION, DEPARTURES = (0,), (1,), 2


# --- an independent implementation: pool by pool, in fractions and on Python's integers ------------------------


def uniforms(seed: int, *key: int) -> Iterator[float]:
    words = np.random.SeedSequence(seed, spawn_key=key).generate_state(4, np.uint64)
    source = Xoshiro([int(word) for word in words])
    while True:
        yield (source.next() >> 11) * 2.0**-53


def unit_process(seed: int, *key: int) -> Iterator[float]:
    """Yield the points of a Poisson process of rate 1."""
    point = 0.0
    for uniform in uniforms(seed, *key):
        point -= math.log1p(-uniform)
        yield point


@dataclass(frozen=True)
class Moment:
    """The system from `time` on, until the next moment."""

    time: float
    tasks: tuple[int, ...]
    threshold: int


class Slow:
    """Each N_1^i at its internal time, the arrivals at n times the integral of the load, r_ij by its intervals."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario, self.seed, self.n = scenario, seed, scenario.pools
        self.tasks = scenario.tasks_at_start().tolist()
        self.threshold = scenario.initial_threshold
        self.arrivals = unit_process(seed, *ARRIVALS)
        self.selection = uniforms(seed, *SELECTION)
        self.processes: dict[int, Iterator[float]] = {}
        self.points: dict[int, float] = {}  # next one of N_1^i
        self.internal: dict[int, float] = {}

    def q(self, level: int) -> Fraction:
        return Fraction(sum(tasks >= level for tasks in self.tasks), self.n)

    def arrival_time(self, point: float) -> float:
        """Return the time when n times the integral of the arrival rate reaches a point."""
        phases = self.scenario.phases
        for place, phase in enumerate(phases):
            rate = self.n * self.scenario.service_rate * phase.load
            end = phases[place + 1].start if place + 1 < len(phases) else math.inf
            gained = rate * (end - phase.start) if rate else 0.0
            if point <= gained:
                return phase.start + point / rate
            point -= gained
        return math.inf

    def rates(self) -> dict[int, float]:
        levels = {level for level in self.tasks if level > 0}
        for level in levels - self.processes.keys():
            self.processes[level] = unit_process(self.seed, DEPARTURES, level)
            self.points[level], self.internal[level] = next(self.processes[level]), 0.0
        return {level: level * self.tasks.count(level) * self.scenario.service_rate for level in levels}

    def dispatched(self, uniform: Fraction) -> int:
        """Return the number of tasks in the pool that gets task j: i - 1 where r_ij = 1."""
        q, threshold = self.q, self.threshold
        if q(threshold) < 1:
            below = 1 - q(threshold)
            ends = {i: ((1 - q(i - 1)) / below, (1 - q(i)) / below) for i in range(1, threshold + 1)}
        elif q(threshold + 1) < 1:
            return threshold
        else:
            ends = {i: (1 - q(i - 1), 1 - q(i)) for i in range(threshold + 2, max(self.tasks) + 2)}
        (chosen,) = [i for i, (low, high) in ends.items() if low <= uniform < high]
        return chosen - 1

    def arrive(self) -> None:
        level = self.dispatched(Fraction(next(self.selection)))
        rise = self.q(self.threshold + 1) >= 1 - Fraction(1, self.n)
        fall = self.scenario.alpha is not None and self.q(self.threshold) <= Fraction(str(self.scenario.alpha))
        self.tasks[self.tasks.index(level)] += 1
        if self.scenario.alpha is not None:
            self.threshold += rise - fall

    def run(self) -> list[Moment]:
        now, path = 0.0, [Moment(0.0, tuple(self.tasks), self.threshold)]
        arrival = self.arrival_time(next(self.arrivals))
        while True:
            rates = self.rates()
            waits = {level: (self.points[level] - self.internal[level]) / rate for level, rate in rates.items()}
            first = min(waits, key=waits.__getitem__, default=0)
            departs = first > 0 and now + waits[first] < arrival
            before, now = now, now + waits[first] if departs else arrival
            if now > self.scenario.horizon:
                return path
            for level, rate in rates.items():
                self.internal[level] += rate * (now - before)
            if departs:
                self.points[first] = next(self.processes[first])
                self.tasks[self.tasks.index(first)] -= 1
            else:
                arrival = self.arrival_time(next(self.arrivals))
                self.arrive()
            path.append(Moment(now, tuple(self.tasks), self.threshold))


SYSTEMS: dict[str, dict[str, Any]] = {
    "fixed": {},
    "fixed at zero": {"threshold": 0, "pools": 10},
    "fixed far above any level": {"threshold": 200, "pools": 10, "horizon": 3.0},
    "far from balance": {"load": 50.5, "pools": 30, "horizon": 0.05},
    "learning, both rules at once": {"alpha": 0.95},
    "learning at the boundary": {"alpha": "0.7", "pools": 10},
    "learning from above": {"alpha": "0.75", "threshold": 9, "initial": 7.5},
    "learning past the first levels": {"pools": 2, "load": 60.0, "alpha": 0.4, "horizon": 3.0},
    "learning with one pool": {"pools": 1, "alpha": 0.5, "horizon": 30.0},
    "learning, slow service": {"alpha": 0.8, "service_rate": 0.3, "horizon": 15.0},
    "uneven start": {"threshold": 2, "initial": [0, 7, 1, 1, 0, 9, 2, 3, 2, 0, 4, 4]},
    "steps": {"load": None, "schedule": "0:3,1:0,2.5:6,4:0.5", "alpha": 0.8, "service_rate": 1.5},
    "a step at the horizon": {"load": None, "schedule": [Phase(0.0, 0.0), Phase(1.5, 4.0), Phase(6.0, 1.0)]},
}


def scenario_of(options: dict[str, Any]) -> Scenario:
    return Scenario(**{"pools": 12, "load": 3.3, "horizon": 6.0, **options})


def one(scenario: Scenario, seed: int = 1, points: int = 2) -> Trajectory:
    return simulate_sizes(scenario, pools=[scenario.pools], seed=seed, points=points)[0]


@pytest.mark.parametrize("options", SYSTEMS.values(), ids=SYSTEMS)
def test_every_event_is_that_of_the_construction(options: dict[str, Any]) -> None:
    scenario, seed = scenario_of(options), 1
    path = Slow(scenario, seed).run()
    found = one(scenario, seed, points=2001)
    assert len(path) > 50
    assert np.array_equal(found.times, np.linspace(0.0, scenario.horizon, 2001))  # nearly every event is apart
    rows = np.searchsorted([moment.time for moment in path], found.times, side="right") - 1
    tasks = np.array([moment.tasks for moment in path])
    levels = range(found.pools_at_least.shape[1])
    assert np.array_equal(found.pools_at_least, np.array([(tasks >= i).sum(axis=1) for i in levels]).T[rows])
    assert np.array_equal(found.threshold, np.array([moment.threshold for moment in path])[rows])
    assert np.array_equal(found.max_tasks, tasks.max(axis=1)[rows])
    assert found.demand.tolist() == [scenario.demand(time) for time in found.times]
    for place in range(0, 2001, 20):
        truth = imbalance_of(path[rows[place]].tasks, scenario.demand(found.times[place]))
        assert abs(found.imbalance[place] - truth) < 1e-12
    changes = [later for earlier, later in pairwise(path) if later.threshold != earlier.threshold]
    np.testing.assert_allclose(found.change_times, [moment.time for moment in changes], rtol=1e-9)
    assert found.change_thresholds.tolist() == [moment.threshold for moment in changes]


# --- records ------------------------------------------------------------------------------------------------


def test_a_trajectory_has_the_form_of_a_simulated_one() -> None:
    scenario = scenario_of({"alpha": 0.8})
    ours, other = one(scenario, points=11), simulate(scenario, points=11).trajectories[0]
    for field in fields(Trajectory):
        mine, theirs = getattr(ours, field.name), getattr(other, field.name)
        if not isinstance(mine, np.ndarray):
            assert mine == theirs, field.name
            continue
        assert (mine.dtype, mine.ndim) == (theirs.dtype, theirs.ndim), field.name
    assert ours.columns().keys() == other.columns().keys()
    assert not ours.tokens_held.any()
    assert not ours.pools_at_least[:, -1].any()


def test_a_long_path_of_thresholds_is_kept_whole() -> None:
    found = one(Scenario(pools=3, load=1.5, alpha=0.6, horizon=8000.0), points=5001)
    values = np.concatenate([[0], found.change_thresholds])
    assert found.change_times.size > 2 * 4096
    assert (np.diff(found.change_times) > 0).all()
    assert (np.abs(np.diff(values)) == 1).all()
    places = np.searchsorted(found.change_times, found.times, side="right")
    assert np.array_equal(found.threshold, values[places])


def test_what_happens_does_not_depend_on_the_snapshots() -> None:
    scenario = Scenario(pools=2000, load=5.5, alpha=0.9, horizon=30.0)  # several calls of the kernel
    few, many = one(scenario, points=3), one(scenario, points=1501)
    assert np.array_equal(few.pools_at_least, many.pools_at_least[::750, : few.pools_at_least.shape[1]])
    assert np.array_equal(few.change_times, many.change_times)


# --- what systems share, and what they do not ---------------------------------------------------------------


def same(first: Trajectory, second: Trajectory) -> bool:
    return all(np.array_equal(getattr(first, f.name), getattr(second, f.name)) for f in fields(Trajectory))


def test_a_system_does_not_depend_on_the_others() -> None:
    scenario = Scenario(pools=5, load=4.4, alpha=0.8, horizon=8.0)
    together = simulate_sizes(scenario, pools=[40, 7, 300, 7, 1], seed=9, points=41)
    assert [trajectory.pools_at_least[0, 0] for trajectory in together] == [40, 7, 300, 7, 1]
    for trajectory, pools in zip(together, [40, 7, 300, 7, 1], strict=True):
        assert same(trajectory, one(replace(scenario, pools=pools), 9, 41))
        assert not same(trajectory, one(replace(scenario, pools=pools), 10, 41))
    sizes: Any = np.array([40, 7, 300, 7, 1])
    for workers in (1, 4):
        again = simulate_sizes(scenario, pools=sizes, seed=9, points=41, workers=workers)
        assert all(same(first, second) for first, second in zip(together, again, strict=True))


def test_a_failure_ends_the_other_systems_too(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = common_module._System.advance

    def advance(system: Any, until: float, stop: Any) -> None:  # noqa: ANN401
        if system.scenario.pools == 2:
            raise RuntimeError("broken")
        whole(system, until, stop)

    monkeypatch.setattr(common_module._System, "advance", advance)
    with pytest.raises(RuntimeError, match="broken"):  # not after the 10^10 events of the other
        simulate_sizes(Scenario(pools=1, load=5.0, horizon=1000.0), pools=[10**6, 2], workers=2)


def test_sizes_share_the_arrival_times_up_to_scale() -> None:
    # Service is so slow against the arrivals that the first thirty tasks or so are all still there.
    scenario = Scenario(pools=3, load=1e5, horizon=1e-4)
    for seed in range(40):
        small = one(scenario, seed, points=401)
        large = one(replace(scenario, pools=12, horizon=0.25e-4), seed, points=401)
        totals = [trajectory.pools_at_least[:, 1:].sum(axis=1) for trajectory in (small, large)]
        assert totals[0][-1] > 5
        assert np.array_equal(*totals)


@pytest.mark.parametrize(("threshold", "levels"), [(0, [1, 2, 3]), (8, [1, 2, 3]), (3, [1, 2, 5])])
def test_sizes_share_the_selections(threshold: int, levels: list[int]) -> None:
    """From the same occupancy, the first task finds the same level in systems of all sizes."""
    firsts: list[int] = []
    for seed in range(60):
        found = set()
        for copies in (1, 4, 25):
            start = np.repeat(levels, copies).tolist()
            scenario = Scenario(
                pools=len(start), load=1e6, threshold=threshold, initial_tasks=start, horizon=3e-6 / len(start)
            )
            counts = one(scenario, seed, points=151).pools_at_least
            moved = counts[np.flatnonzero(counts[:, 1:].sum(axis=1) > sum(start))[:1]]
            if moved.size and moved[0, 1:].sum() == sum(start) + 1:
                found.add(int(np.flatnonzero(moved[0] - counts[0])[0]))
        assert len(found) <= 1
        firsts += found
    assert len(firsts) > 40
    assert len(set(firsts)) > 1


@pytest.mark.parametrize("level", [1, 4])
def test_sizes_share_the_departures_of_a_level(level: int) -> None:
    """From all pools at one level, the first departure comes at the same time up to scale; levels differ."""
    scenario = Scenario(pools=3, load=1e-9, initial_tasks=level, horizon=5 / (3 * level))
    seen = 0
    for seed in range(40):
        rows = []
        for pools in (3, 12):
            scaled = replace(scenario, pools=pools, horizon=scenario.horizon * 3 / pools)
            counts = one(scaled, seed, points=251).pools_at_least
            rows.append(np.flatnonzero(counts[:, level] < pools)[:1].tolist())
        assert rows[0] == rows[1]
        seen += len(rows[0])
    assert seen > 25


def test_processes_differ_from_one_another() -> None:
    """A departure from level 1 and one from level 2 do not come at the same internal time."""
    firsts = []
    for level in (1, 2):
        counts = one(Scenario(pools=4, load=1e-9, initial_tasks=level, horizon=2 / level), 5, 501).pools_at_least
        firsts.append(int(np.flatnonzero(counts[:, level] < 4)[0]))
    assert firsts[0] != firsts[1]


# --- laws ---------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_total_is_poisson_under_steps_of_the_load() -> None:
    scenario = Scenario(pools=6, schedule="0:4,1.5:0,2:9", alpha=0.8, service_rate=0.8, horizon=3.0)
    mean, rate = 0.0, 0.8
    for load, length in ((4.0, 1.5), (0.0, 0.5), (9.0, 1.0)):
        mean = load + (mean - load) * math.exp(-rate * length)
    totals = [int(one(scenario, seed).pools_at_least[-1, 1:].sum()) for seed in range(1000)]
    assert_poisson(totals, 6 * mean)


@pytest.mark.parametrize(
    ("threshold", "alpha"), [pytest.param(4, None, marks=pytest.mark.full), (0, 0.6)], ids=["fixed", "learning"]
)
def test_the_law_is_the_exact_one(threshold: int, alpha: float | None) -> None:
    # After 16 mean task times the start is forgotten up to about exp(-16), far below the noise of 1500 seeds.
    scenario = Scenario(pools=4, load=2.2, threshold=threshold, alpha=alpha, horizon=16.0)
    law = solve_exact(policy="threshold", pools=4, load=2.2, threshold=threshold, alpha=alpha)
    ends = [one(scenario, seed) for seed in range(1500)]
    assert law.threshold_share is not None
    compare_law([int(end.max_tasks[-1]) for end in ends], dict(enumerate(law.max_tasks_distribution)))
    if alpha is not None:
        compare_law([int(end.threshold[-1]) for end in ends], law.threshold_share)


def compare_law(values: list[int], law: dict[int, float]) -> None:
    """Compare by chi-square over the values that are not rare. The rest are pooled where possible."""
    common = [value for value, share in law.items() if share * len(values) >= 25]
    assert len(common) >= 2
    counts = [values.count(value) for value in common]
    expected = [law[value] * len(values) for value in common]
    rest = len(values) - sum(expected)
    if rest >= 25:
        counts.append(len(values) - sum(counts))
        expected.append(rest)
    else:  # given that the value is not rare
        expected = [share * sum(counts) / sum(expected) for share in expected]
    assert_chi_square(counts, expected)


def test_one_seed_approaches_the_fluid_mass_as_pools_grow() -> None:
    """Started empty the total is Poisson at every time; its distance to n u(t) has that law's quantiles."""
    from scipy.stats import poisson

    scenario = Scenario(pools=1, load=5.5, alpha=0.9, horizon=6.0)
    found = simulate_sizes(scenario, pools=[100, 1000, 10_000, 100_000], seed=3, points=61)
    for trajectory in found:
        pools = trajectory.pools_at_least[0, 0]
        means = pools * 5.5 * (1 - np.exp(-trajectory.times))
        totals = trajectory.pools_at_least[:, 1:].sum(axis=1)
        low, high = poisson.ppf(FALSE_ALARM / 2, means[1:]), poisson.isf(FALSE_ALARM / 2, means[1:])
        assert ((low <= totals[1:]) & (totals[1:] <= high)).all()
    assert found[-1].threshold[-1] == 5


# --- input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "arguments", "sentence"),
    [
        ({"policy": "jsq"}, {}, "only supports the policy threshold, not jsq"),
        ({"capacity": 9}, {}, "does not support a capacity, and 9 was given"),
        ({"load": None, "schedule": "0:3~1/2"}, {}, "in steps, not waves"),
        ({}, {"pools": 5}, "pools must be a list of whole numbers, one for each system, not 5"),
        ({}, {"pools": []}, "the number of systems must be a whole number from 1 to 100, not 0"),
        ({}, {"pools": [3, 0]}, "pools must be a whole number from 1"),
        ({}, {"points": 50_001, "pools": [2] * 20}, "points times systems must be at most 1000000"),
        ({"initial": [1, 2, 3]}, {"pools": [3, 4]}, "initial_tasks must have 4 numbers"),
        ({}, {"pools": np.array(5)}, "flat list of whole numbers, not an array of 0 dimensions"),
        ({"load": 2e5}, {"points": 1000}, "levels are more than 25000000"),
    ],
)
def test_bad_input_is_rejected(change: dict[str, Any], arguments: dict[str, Any], sentence: str) -> None:
    scenario = Scenario(**{"pools": 3, "load": 3.0, "horizon": 1.0, **change})
    with pytest.raises(InputError, match=sentence):
        simulate_sizes(scenario, **{"pools": [3], **arguments})
