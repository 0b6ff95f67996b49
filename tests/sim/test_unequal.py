"""Pools of different sizes in the simulator: utility, one size as a special case, input, files."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim import Result, Scenario, compare, simulate
from evenly.sim.run import with_policies
from evenly.workload.pools import PoolClass, find_utility
from tests.sim.support import average, first_seed, pieces, reference_path

SIZES = "6*1,4*4,2*2.5"


@pytest.mark.parametrize(
    ("policy", "utility", "service"),
    [
        ("random", "rate", "exponential"),
        ("greedy-utility", "sqrt", "exponential"),
        ("threshold-utility", "log", "exponential"),
        ("threshold-utility", "rate", "weibull:shape=0.5"),
        ("weighted-round-robin", "log", "weibull:shape=0.5"),
    ],
)
def test_utility_is_the_time_average_over_the_path(policy: str, utility: str, service: str) -> None:
    scenario = Scenario(
        policy=policy, sizes=SIZES, load=3.3, horizon=9.0, warmup=2.0, utility=utility, service=service
    )
    result = simulate(scenario, seed=5)
    sizes = [1.0] * 6 + [4.0] * 4 + [2.5] * 2
    total = find_utility(utility).total
    window = pieces(scenario, reference_path(scenario, first_seed(5)), 2.0, 9.0)
    expected = average(window, lambda now: sum(map(total, sizes, now.tasks))) / 12
    assert result.mean_utility == pytest.approx(expected, rel=1e-9)
    for c, part in enumerate([slice(0, 6), slice(6, 10), slice(10, 12)]):
        tasks = average(window, lambda now, part=part: float(np.mean(now.tasks[part])))  # type: ignore[misc]
        assert result.class_tasks[c] == pytest.approx(tasks, rel=1e-9)


@pytest.mark.parametrize(
    ("sized", "equal"),
    [
        ({"policy": "threshold-utility", "alpha": "0.9"}, {"policy": "threshold", "alpha": "0.9"}),
        ({"policy": "threshold-utility"}, {"policy": "threshold"}),
        ({"policy": "greedy-utility"}, {"policy": "jsq"}),
        ({"policy": "weighted-least"}, {"policy": "jsq"}),
        ({"policy": "weighted-round-robin"}, {"policy": "round-robin"}),
        ({"policy": "threshold", "alpha": "0.9"}, {"policy": "threshold", "alpha": "0.9"}),
        ({"policy": "random"}, {"policy": "random"}),
    ],
)
def test_one_size_gives_exactly_the_result_of_equal_pools(sized: dict[str, Any], equal: dict[str, Any]) -> None:
    """Two kernels, one path: pools, messages, threshold and all integrals are the same."""
    service = "lognormal:cv=4" if "alpha" in sized or sized["policy"] == "random" else "exponential"
    demand: dict[str, Any] = {"schedule": "0:5.5,20:8~2/6", "horizon": 40.0, "warmup": 5.0, "service": service}
    ours = simulate(Scenario(sizes="50*2.5", **demand, **sized), seed=3)
    theirs = simulate(Scenario(pools=50, **demand, **equal), seed=3)
    assert ours.events == theirs.events
    assert ours.endings == theirs.endings
    for name in vars(ours.window):
        if name not in ("utility", "class_tasks"):
            a, b = np.asarray(getattr(ours.window, name)), np.asarray(getattr(theirs.window, name))
            size = max(a.size, b.size)
            np.testing.assert_allclose(np.resize(a, size) if a.ndim == 0 else np.pad(a, (0, size - a.size)),
                                       np.resize(b, size) if b.ndim == 0 else np.pad(b, (0, size - b.size)),
                                       rtol=1e-9, atol=1e-6)  # fmt: skip


def test_utility_has_an_interval_that_narrows() -> None:
    scenario = Scenario(policy="greedy-utility", sizes="40*1,10*4", load=5.5, horizon=60.0, warmup=10.0)
    few, many = (simulate(scenario, replications=runs).half_widths()["mean_utility"] for runs in (4, 36))
    assert 0 < many < few
    assert "mean_utility" not in simulate(Scenario(pools=5, load=1.0, horizon=5.0)).scalars()


def test_results_are_saved_and_loaded(tmp_path: Path) -> None:
    scenario = Scenario(
        policy="threshold-utility", sizes=[PoolClass(4, 1.0), PoolClass(2, 3.0)], load=4.0, alpha="0.8",
        utility="rate", horizon=30.0,
    )  # fmt: skip
    result = simulate(scenario, points=11)
    result.save(tmp_path / "sized.npz")
    loaded = Result.read(tmp_path / "sized.npz")
    assert loaded == result
    assert loaded.scenario.classes == (PoolClass(4, 1.0), PoolClass(2, 3.0))
    assert loaded.mean_utility == result.mean_utility
    assert loaded.to_dict()["utility"] == {"name": "rate", "mean": result.mean_utility}


def test_text_tables_and_comparisons_show_the_utility() -> None:
    scenario = Scenario(policy="threshold-utility", sizes=SIZES, load=3.3, alpha="0.8", horizon=30.0)
    result = simulate(scenario)
    rows = dict(result._rows())
    assert "utility per pool" in rows and "tasks at size 2.5" in rows and "imbalance" not in rows
    assert "12 pools (6*1,4*4,2*2.5)" in repr(result)
    both = compare(with_policies(replace(scenario, alpha=None), ["random", "greedy-utility"]))
    assert both.to_pandas()["mean_utility"].tolist() == [each.mean_utility for each in both]
    assert "utility" in both._repr_html_()
    result.plot()
    both.plot()
    with pytest.raises(InputError, match="use mean_utility"):
        result.utility(math.sqrt)


def test_pools_are_counted_from_sizes() -> None:
    assert Scenario(sizes="80*1,20*4", load=1.0).pools == 100
    assert Scenario(sizes=[(80, 1), (20, 4)], load=1.0).sizes == "80*1,20*4"  # type: ignore[list-item]
    assert Scenario(policy="greedy-utility", pools=7, load=1.0).classes == (PoolClass(7, 1.0),)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sizes": "80*1", "pools": 5}, "pools must be 80, as many as sizes has"),
        ({"sizes": "80*0"}, "size of a pool must be a number from 0.001 to 1000"),
        ({"sizes": [80, 20]}, "pair of count and size"),
        ({"sizes": "8*1", "policy": "jiq"}, "sizes is for policy threshold, jsq, random, greedy-utility"),
        ({"sizes": "8*1", "capacity": 5}, "take no capacity"),
        ({"pools": 8, "policy": "greedy-utility", "capacity": 5}, "take no capacity"),
        ({"sizes": "8*1", "delay": 0.1}, "take no delay"),
        ({"sizes": "8*1", "utility": "best"}, "utility must be one of log, sqrt, rate, not 'best'"),
        ({"pools": 8, "utility": "log"}, "utility is for pools with sizes"),
        ({"sizes": "8*1", "policy": "threshold-utility", "threshold": 10**6}, "threshold must be a whole number"),
        ({"sizes": "999999*0.001,1*1000"}, "reduce load or the differences in size"),
    ],
)
def test_scenarios_that_do_not_fit_are_rejected(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        Scenario(load=5.5, **given)
    assert "\n" not in str(error.value)
