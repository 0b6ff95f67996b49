"""Simulations of small systems agree with their exact laws.

Every comparison has a false-alarm rate of 1e-9, from Student's law over 48 independent replications.
"""

from typing import Any

import numpy as np
import pytest

from evenly.sim import Scenario, simulate
from evenly.sim.tally import Averages, Tally, averages
from evenly.theory.exact.law import ExactLaw, solve_exact
from tests import distributions as stats
from tests.sim.support import FALSE_ALARM, assert_mean

SYSTEMS: list[dict[str, Any]] = [
    {"policy": "threshold", "pools": 4, "load": 2.2},
    {"policy": "threshold", "pools": 3, "load": 1.5, "threshold": 0},
    {"policy": "threshold", "pools": 5, "load": 1.3, "threshold": 3},
    {"policy": "threshold", "pools": 4, "load": 2.2, "threshold": 2, "capacity": 4},
    {"policy": "threshold", "pools": 4, "load": 2.2, "alpha": 0.6},
    {"policy": "threshold", "pools": 3, "load": 1.5, "alpha": 0.9},
    {"policy": "threshold", "pools": 5, "load": 1.3, "alpha": "0.2"},
    {"policy": "threshold", "pools": 2, "load": 3.0, "alpha": 0.5},
    {"policy": "threshold", "pools": 4, "load": 2.2, "alpha": 0.6, "capacity": 3},
    {"policy": "threshold", "pools": 5, "load": 0.4, "alpha": 0.4},
    {"policy": "jsq", "pools": 4, "load": 2.2},
    {"policy": "jsq", "pools": 5, "load": 2.2, "capacity": 3},
    {"policy": "power-of-d", "pools": 4, "load": 2.2, "sample_size": 2},
    {"policy": "power-of-d", "pools": 5, "load": 1.3, "sample_size": 3},
    {"policy": "power-of-d", "pools": 4, "load": 2.2, "sample_size": 2, "capacity": 3},
    {"policy": "random", "pools": 4, "load": 2.2},
    {"policy": "random", "pools": 4, "load": 2.2, "capacity": 3},
]
NOT_RARE = 0.01  # rarer levels have samples that are far from normal


def named(system: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in system.items())


def level(values: Any, index: int) -> float:  # noqa: ANN401
    return float(values[index]) if index < len(values) else 0.0


def simulated(means: Averages, window: Tally, law: ExactLaw) -> dict[str, float]:
    """Return the averages of one sample, under the names used in `predicted`."""
    numbers = {
        "mean_tasks": means.mean_tasks,
        "max_tasks": means.max_tasks,
        "imbalance": means.imbalance,
        "lost": means.lost_share,
        "messages per task": means.messages_per_task,
        **{f"exactly {i}": level(means.pools_with_exactly, i) for i in common(law.pools_with_exactly)},
        **{f"share {i}": level(means.task_share, i) for i in common(law.task_share)},
        **{f"max {i}": level(means.max_tasks_distribution, i) for i in common(law.max_tasks_distribution)},
    }
    if law.threshold_share:
        numbers |= {
            "threshold": means.threshold or 0.0,
            "resync per task": means.resync_per_task,
            "green per task": window.green / window.arrivals,
            "yellow per task": window.yellow / window.arrivals,
            "changes": window.change_count / window.time,
            **{f"at {i}": means.threshold_share.get(i, 0.0) for i in likely(law)},
        }
    return numbers


def predicted(law: ExactLaw) -> dict[str, float]:
    """Return the same averages from the law."""
    numbers = {
        "mean_tasks": law.mean_tasks,
        "max_tasks": law.max_tasks,
        "imbalance": law.imbalance,
        "lost": law.lost_share,
        **{f"exactly {i}": float(law.pools_with_exactly[i]) for i in common(law.pools_with_exactly)},
        **{f"share {i}": float(law.task_share[i]) for i in common(law.task_share)},
        **{f"max {i}": float(law.max_tasks_distribution[i]) for i in common(law.max_tasks_distribution)},
    }
    if not law.threshold_share:
        # One message per departure; two per pool sampled; none.
        rivals = {"jsq": 1 - law.lost_share, "power-of-d": 2.0 * (law.sample_size or 0), "random": 0.0}
        return {**numbers, "messages per task": rivals[law.policy]}
    green, yellow = law.green_per_task or 0.0, law.yellow_per_task or 0.0
    return {
        **numbers,
        "messages per task": green + yellow,
        "threshold": sum(at * share for at, share in law.threshold_share.items()),
        "resync per task": law.resync_per_task or 0.0,
        "green per task": green,
        "yellow per task": yellow,
        "changes": (law.rise_rate or 0.0) + (law.fall_rate or 0.0),
        **{f"at {i}": law.threshold_share[i] for i in likely(law)},
    }


def common(shares: Any) -> list[int]:  # noqa: ANN401
    return [index for index, share in enumerate(shares) if share > NOT_RARE]


def likely(law: ExactLaw) -> list[int]:
    return [at for at, share in law.threshold_share.items() if share > NOT_RARE]


BOTH_WAYS = SYSTEMS[3:5] + SYSTEMS[10:12] + SYSTEMS[12:13] + SYSTEMS[15:16]


@pytest.mark.parametrize(
    ("system", "mean_holding_times"),
    [
        *((system, False) for system in SYSTEMS),
        *((system, True) for system in BOTH_WAYS),
        *(pytest.param(system, True, marks=pytest.mark.full) for system in SYSTEMS if system not in BOTH_WAYS),
    ],
    ids=lambda value: named(value) if isinstance(value, dict) else "means" if value else "times",
)
def test_simulated_averages_agree_with_the_exact_law(system: dict[str, Any], mean_holding_times: bool) -> None:
    law = solve_exact(**system)
    scenario = Scenario(**system, horizon=1050.0, warmup=50.0)
    result = simulate(scenario, seed=31, replications=48, mean_holding_times=mean_holding_times)
    rows = [simulated(averages(sample, scenario.pools), sample, law) for sample in result.windows]
    for name, truth in predicted(law).items():
        assert_mean([row[name] for row in rows], truth, name, slack=1e-7)


def test_the_service_rate_does_not_change_the_law() -> None:
    system = {"policy": "threshold", "pools": 4, "load": 2.2, "alpha": 0.6}
    law = solve_exact(**system)  # type: ignore[arg-type]
    scenario = Scenario(**system, service_rate=3.0, horizon=350.0, warmup=20.0)  # type: ignore[arg-type]
    result = simulate(scenario, seed=32, replications=48)
    for name in ("mean_tasks", "threshold", "imbalance"):
        samples = [averages(sample, 4).scalars()[name] for sample in result.windows]
        assert_mean(samples, predicted(law)[name], name, slack=1e-7)


def test_batches_of_one_long_run_agree_with_the_law() -> None:
    system = {"policy": "threshold", "pools": 4, "load": 2.2, "alpha": 0.6}
    law = solve_exact(**system)  # type: ignore[arg-type]
    scenario = Scenario(**system, horizon=40_050.0, warmup=50.0)  # type: ignore[arg-type]
    result = simulate(scenario, seed=33, batches=40)
    # Batches of a thousand task times are practically independent. The 95 % widths are stretched to 1e-9.
    stretch = float(stats.t.isf(FALSE_ALARM / 2, 39) / stats.t.isf(0.025, 39))
    widths = result.half_widths()
    assert widths
    for name, width in widths.items():
        if name in predicted(law):
            truth = predicted(law)[name]
            assert abs(result.scalars()[name] - truth) <= stretch * width + 1e-7, name


def test_mean_holding_times_give_narrower_intervals() -> None:
    # The variance of mean_tasks halves here (from 0.8 to 0.39, by the sum in the tests of intervals). The
    # logarithm of a ratio of sample variances has deviation 0.1, and log 2 is seven times that.
    scenario = Scenario(policy="jsq", pools=2, load=0.2, horizon=320.0, warmup=20.0)
    variances = []
    for mean_holding_times in (False, True):
        result = simulate(scenario, seed=34, replications=400, mean_holding_times=mean_holding_times)
        variances.append(np.var([averages(sample, 2).mean_tasks for sample in result.windows], ddof=1))
    assert variances[1] < variances[0]
