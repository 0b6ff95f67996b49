"""The records, recomputed naively from the reference's path as sums over pools and intervals."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from evenly.sim import Result, Scenario, simulate
from evenly.sim.tally import Averages, FloatArray, averages
from evenly.workload.pools import UTILITIES
from tests.sim.support import (
    CORE,
    LOOPS,
    OPTIONS,
    STEADY_OPTIONS,
    Moment,
    Piece,
    assert_same_averages,
    average,
    by_tier,
    first_seed,
    imbalance_of,
    means_of,
    pieces,
    reference_path,
    scenario_of,
    state_at,
)

HORIZON, WARMUP = 25.0, 4.0


def spread_of(tasks: Sequence[int]) -> float:
    mean = math.fsum(tasks) / len(tasks)
    return math.sqrt(math.fsum((count - mean) ** 2 for count in tasks) / len(tasks))


def utility_of(scenario: Scenario, state: Moment) -> float:
    """Return the utility per pool."""
    sizes = [each.size for each in scenario.classes for _ in range(each.count)]
    return math.fsum(map(UTILITIES[scenario.measure].total, sizes, state.tasks)) / scenario.pools


def recomputed(scenario: Scenario, path: Sequence[Moment], since: float, until: float) -> Averages:
    """Compute the averages of a window by their definitions."""
    window = pieces(scenario, path, since, until)
    first, last = state_at(path, since), state_at(path, until)
    sent = {kind: last.messages[kind] - first.messages[kind] for kind in last.messages}
    per_task = 1 / (last.arrivals - first.arrivals) if last.arrivals > first.arrivals else 0.0
    tasks = average(window, lambda state: sum(state.tasks))
    exactly = distribution(window, lambda state: state.tasks) / scenario.pools
    maxima = distribution(window, lambda state: [max(state.tasks)])
    thresholds = distribution(window, lambda state: [] if state.threshold is None else [state.threshold])
    return Averages(
        mean_tasks=tasks / scenario.pools,
        pools_with_exactly=exactly,
        task_share=exactly * np.arange(exactly.size) * scenario.pools / tasks,
        max_tasks=average(window, lambda state: max(state.tasks)),
        max_tasks_distribution=maxima,
        spread=average(window, lambda state: spread_of(state.tasks)),
        imbalance=math.fsum(piece.weight * imbalance_of(piece.state.tasks, piece.load) for piece in window),
        messages_per_task=(sent["green"] + sent["yellow"] + sent["other"]) * per_task,
        resync_per_task=sent["resync"] * per_task,
        threshold=None if first.threshold is None else average(window, lambda state: state.threshold or 0),
        threshold_share={level: float(share) for level, share in enumerate(thresholds) if share > 0},
        lost_share=(last.lost - first.lost) * per_task,
        mean_utility=average(window, partial(utility_of, scenario)) if scenario.sized else None,
    )


def distribution(window: Sequence[Piece], values: Callable[[Moment], Sequence[int]]) -> FloatArray:
    """Return, per number, the time average of how often it is among the values."""
    sums: Counter[int] = Counter()
    for piece in window:
        for value in values(piece.state):
            sums[value] += piece.weight  # type: ignore[assignment]
    return np.array([sums[level] for level in range(max(sums, default=-1) + 1)], float)


@pytest.mark.parametrize("name", by_tier(CORE, LOOPS))
def test_averages_are_those_of_the_path(name: str) -> None:
    scenario = scenario_of(OPTIONS[name], horizon=HORIZON, warmup=WARMUP)
    path = reference_path(scenario, first_seed(8))
    result = simulate(scenario, seed=8, batches=0)
    waves = any(phase.amplitude for phase in scenario.phases)  # then the balanced occupancy moves between events
    truth = recomputed(scenario, path, WARMUP, HORIZON)
    assert_same_averages(truth, means_of(result), but=["imbalance"] if waves else [])
    if waves:
        assert result.imbalance == pytest.approx(fine_imbalance(scenario, path), abs=1e-3)


@pytest.mark.parametrize("name", [name for name in STEADY_OPTIONS if name in LOOPS])
def test_averages_with_mean_holding_times_are_those_of_the_path(name: str) -> None:
    scenario = scenario_of(STEADY_OPTIONS[name], horizon=9.0, warmup=2.0)
    path = reference_path(scenario, first_seed(8), mean_holding=True)
    result = simulate(scenario, seed=8, mean_holding_times=True, batches=0)
    assert_same_averages(recomputed(scenario, path, 2.0, 9.0), means_of(result))


def fine_imbalance(scenario: Scenario, path: Sequence[Moment]) -> float:
    """Return the average imbalance relative to the load at every instant, by the midpoint rule."""
    times = np.arange(WARMUP, HORIZON, 0.005) + 0.0025
    return float(np.mean([imbalance_of(state_at(path, time).tasks, scenario.demand(time)) for time in times]))


@pytest.mark.parametrize("name", ["learning", "steps, threshold", "steps, jbt"])
def test_every_batch_is_its_window_of_the_path(name: str) -> None:
    scenario = scenario_of(OPTIONS[name], horizon=HORIZON, warmup=WARMUP)
    path = reference_path(scenario, first_seed(8))
    result = simulate(scenario, seed=8, batches=3)
    edges = [4.0, 11.0, 18.0, 25.0]
    for sample, (begin, end) in zip(result.windows, pairwise(edges), strict=True):
        assert_same_averages(recomputed(scenario, path, begin, end), averages(sample, scenario.pools))


def test_every_replication_is_its_own_path_and_the_whole_is_their_mean() -> None:
    scenario = scenario_of(OPTIONS["learning with capacity"], horizon=HORIZON, warmup=WARMUP)
    result = simulate(scenario, seed=8, replications=3)
    truths = []
    for index, sample in enumerate(result.windows):
        path = reference_path(scenario, first_seed(8, index))
        truths.append(recomputed(scenario, path, WARMUP, HORIZON))
        assert_same_averages(truths[-1], averages(sample, scenario.pools))
    for name in ("mean_tasks", "max_tasks", "imbalance", "spread", "threshold"):
        expected = np.mean([truth.scalars()[name] for truth in truths])
        assert result.scalars()[name] == pytest.approx(expected, rel=1e-9)


def test_arrivals_that_find_no_token_are_counted() -> None:
    for name in ("threshold zero", "threshold with capacity", "jbt", "jiq with capacity"):
        scenario = scenario_of(OPTIONS[name], horizon=HORIZON)
        path = reference_path(scenario, first_seed(8))
        below = {"jbt": scenario.initial_threshold, "jiq": 1}.get(scenario.info.name)
        unguided = sum(
            min(before.tasks) >= (below if before.threshold is None else before.threshold + 1)  # type: ignore[operator]
            for before, after in pairwise(path)
            if after.arrivals > before.arrivals
        )
        assert simulate(scenario, seed=8).without_token == unguided > 0


def test_messages_and_losses_are_reported_by_kind() -> None:
    scenario = scenario_of(OPTIONS["learning with capacity"], horizon=200.0)
    last = reference_path(scenario, first_seed(9))[-1]
    report = simulate(scenario, seed=9).to_dict()
    per_task = (last.messages["green"] + last.messages["yellow"]) / last.arrivals
    assert report["messages"] == {
        **last.messages,
        "tasks": last.arrivals,
        "per_task": pytest.approx(per_task, rel=1e-12),
    }
    assert report["lost"] == last.lost > 0


def test_the_threshold_is_reported_as_it_went() -> None:
    scenario = scenario_of(OPTIONS["learning from above"], horizon=HORIZON)
    path = reference_path(scenario, first_seed(8))
    changes = [
        (after.time, after.threshold) for before, after in pairwise(path) if before.threshold != after.threshold
    ]
    result = simulate(scenario, seed=8, points=2)
    report = result.to_dict()["threshold"]
    assert (report["initial"], report["final"]) == (9, path[-1].threshold)
    assert report["changes"] == len(changes) > 5
    assert report["settled_at"] == pytest.approx(changes[-1][0], rel=1e-12)
    assert result.trajectories[0].change_thresholds.tolist() == [threshold for _, threshold in changes]
    np.testing.assert_allclose(result.trajectories[0].change_times, [time for time, _ in changes], rtol=1e-12)


def test_a_long_path_of_the_threshold_is_kept_whole() -> None:
    scenario = Scenario(pools=2, load=5.0, alpha=0.6, horizon=3000.0)
    result = simulate(scenario, points=2, batches=0)
    path = result.trajectories[0]
    assert path.change_times.size == result.change_count > 3 * 4096
    values = [0, *path.change_thresholds.tolist()]
    assert all(abs(later - earlier) == 1 for earlier, later in pairwise(values))
    assert result.endings[0].threshold == values[-1]
    lengths = np.diff([0.0, *path.change_times, 3000.0])
    shares = np.bincount(values, weights=lengths) / 3000.0
    for level, share in result.threshold_share.items():
        assert share == pytest.approx(shares[level], rel=1e-9)


@pytest.mark.parametrize("name", LOOPS)
def test_snapshots_are_the_reference_at_their_times(name: str) -> None:
    scenario = scenario_of(OPTIONS[name], horizon=HORIZON)
    path = reference_path(scenario, first_seed(8))
    result = simulate(scenario, seed=8, points=26)
    seen = result.trajectories[0]
    np.testing.assert_allclose(seen.times, np.arange(26.0), rtol=1e-15)
    for row, time in enumerate(seen.times.tolist()):
        state = state_at(path, time)
        counts = [sum(count >= level for count in state.tasks) for level in range(seen.pools_at_least.shape[1])]
        assert seen.pools_at_least[row].tolist() == counts
        assert seen.max_tasks[row] == max(state.tasks)
        assert seen.threshold[row] == (-1 if state.threshold is None else state.threshold)
        assert seen.demand[row] == scenario.demand(time)
        assert seen.imbalance[row] == pytest.approx(
            imbalance_of(state.tasks, scenario.demand(time)), rel=1e-9, abs=1e-7
        )
        assert seen.occupancy[row, 1:].sum() == pytest.approx(sum(state.tasks) / scenario.pools)


@pytest.mark.parametrize("name", ["threshold zero", "learning from above"])
def test_tokens_are_pools_below_and_at_most_at_the_threshold(name: str) -> None:
    scenario = scenario_of(OPTIONS[name], horizon=HORIZON)
    path = reference_path(scenario, first_seed(8))
    seen = simulate(scenario, seed=8, points=26).trajectories[0]
    green, yellow = seen.tokens()
    for row, time in enumerate(seen.times.tolist()):
        state = state_at(path, time)
        assert state.threshold is not None
        assert green[row] == sum(count < state.threshold for count in state.tasks)
        assert yellow[row] == sum(count <= state.threshold for count in state.tasks)
    columns = seen.columns()
    assert columns["green_tokens"].tolist() == green.tolist()
    assert columns["yellow_tokens"].tolist() == yellow.tolist()


def test_the_demand_between_and_at_the_steps_is_as_scheduled() -> None:
    scenario = Scenario(pools=2, schedule="0:3,2:0,14.5:6~3/4")
    assert [scenario.demand(time) for time in (0, 1.9, 2, 14.4, 14.5)] == [3, 3, 0, 0, 6]
    assert [scenario.demand(time) for time in (15.5, 17.5, 18.5)] == pytest.approx([9, 3, 6])


def test_utility_is_the_sum_over_pools_at_every_instant() -> None:
    scenario = scenario_of(OPTIONS["power of two"], horizon=HORIZON, warmup=WARMUP)
    path = reference_path(scenario, first_seed(8))

    def utility(state: Moment) -> float:
        return math.fsum(count * math.log(1 / count) for count in state.tasks if count > 0)

    truth = average(pieces(scenario, path, WARMUP, HORIZON), utility)
    assert simulate(scenario, seed=8).utility(math.log) == pytest.approx(truth, rel=1e-9)


def test_the_share_of_tasks_above_a_level_is_the_tail_of_the_shares() -> None:
    scenario = scenario_of(OPTIONS["random"], horizon=HORIZON, warmup=WARMUP)
    path = reference_path(scenario, first_seed(8))
    result: Result = simulate(scenario, seed=8)
    window = pieces(scenario, path, WARMUP, HORIZON)
    tasks = average(window, lambda state: sum(state.tasks))
    for level in (0, 3, 5, 50):
        above = average(window, partial(tasks_above, level))
        assert result.share_above(level) == pytest.approx(above / tasks, rel=1e-9)


def tasks_above(level: int, state: Moment) -> int:
    return sum(count for count in state.tasks if count > level)


def test_a_wave_far_swifter_than_the_events_takes_no_longer() -> None:
    """Panels over the whole time between two events would be a hundred billion."""
    swift = simulate(Scenario(policy="jsq", pools=1, schedule="0:3~1/1e-9", horizon=20.0), seed=3)
    assert swift.events > 50
    assert 0 < swift.imbalance < 3
