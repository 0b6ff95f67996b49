"""Bad input is rejected in one sentence, which says what was given and what is allowed."""

import re
from itertools import repeat
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim import Phase, Scenario, compare, simulate, with_policies
from evenly.sim.run import MAX_REPLICATIONS
from evenly.workload.demand import parse_schedule

# One row for each check of a scenario: the input, and words of the sentence. What numbers are is tested with the
# functions that check them (tests/base/test_inputs.py).
REJECTED: list[tuple[dict[str, Any], list[str]]] = [
    ({"policy": "best"}, ["'best'", "threshold, jsq, power-of-d, random, round-robin, jiq, jbt, pull"]),
    ({"pools": 0}, ["pools", "from 1 to 1000000000", "not 0"]),
    ({"pools": 10**8, "policy": "jiq"}, ["pools", "to 10000000", "not 100000000"]),
    ({"pools": 10**7, "policy": "jiq", "load": 100.0}, ["jiq stores every task", "100000000", "10000000 pools"]),
    ({"load": None}, ["load", "schedule"]),
    ({"schedule": "0:3"}, ["load or a schedule", "not both"]),
    ({"load": 2e6}, ["load", "at most 1000000", "not 2000000.0"]),
    ({"alpha": 1.2}, ["alpha", "strictly between 0 and 1", "not 1.2"]),
    ({"alpha": "1e-999999999"}, ["alpha", "1e-999999999"]),
    ({"warmup": 200.0}, ["warm-up", "before the horizon 200", "not at 200"]),
    ({"warmup": -1.0}, ["warmup", "zero or a positive number", "not -1"]),
    ({"horizon": 1e200}, ["horizon", "to 1e+100", "not 1e+200"]),
    ({"horizon": 1e15}, ["events", "beyond 1e+15", "Reduce horizon"]),
    ({"service_rate": 1e-320}, ["service_rate", "from 1e-100", "not 1e-320"]),
    ({"service_rate": 10**32}, ["4e+35 events", "beyond 1e+15", "Reduce horizon"]),
    ({"load": 1e-5, "service_rate": 1e16}, ["events", "too many"]),
    (
        {"load": 1, "arrivals": "bursty:ratio=2,share=0.5,length=1e-6", "horizon": 3e10},
        ["events", "too many", "make bursts longer"],
    ),
    ({"load": None, "schedule": "0:2~1/1e-11"}, ["period", "at least 2e-10", "not 1e-11"]),
    ({"load": None, "schedule": "0:2~1/1e-308"}, ["period", "at least 1e-100", "not 1e-308"]),
    ({"load": None, "schedule": [1, 2]}, ["schedule", "list of phases", "not [1, 2]"]),
    ({"load": None, "schedule": []}, ["begin at time 0"]),
    ({"policy": "power-of-d", "sample_size": 6}, ["sample_size", "1 to 5", "number of pools", "not 6"]),
    ({"policy": "power-of-d", "sample_size": 600, "pools": 1000}, ["sample_size", "from 1 to 512", "not 600"]),
    ({"initial": [1, 2]}, ["initial", "5 numbers", "not 2"]),
    ({"initial": np.array(3)}, ["initial_tasks", "flat list", "not an array of 0 dimensions"]),
    ({"initial": 2e6}, ["initial", "number from 0 to 1000000", "not 2000000.0"]),
    ({"initial": [0, 0, 0, 0, -1]}, ["initial_tasks", "from 0", "not -1"]),
    ({"threshold": -1}, ["threshold", "from 0", "not -1"]),
    ({"capacity": 0}, ["capacity", "whole number from 1", "not 0"]),
    ({"capacity": 2, "threshold": 2}, ["threshold", "at most 1 with capacity 2", "not 2"]),
    ({"capacity": 3, "initial": [0, 0, 0, 0, 9]}, ["initial", "capacity 3", "not 9"]),
    ({"policy": "jbt", "threshold": 0}, ["threshold", "from 1", "not 0"]),
    ({"policy": "jbt", "threshold": 4, "capacity": 3}, ["threshold", "at most 3 with capacity 3", "not 4"]),
    ({"policy": "pull"}, ["pull", "capacity"]),
    ({"policy": "pull", "pools": 10**6, "capacity": 10**6}, ["pull", "1000000"]),
]

SCHEDULES: list[tuple[str, list[str]]] = [
    ("", ["time:load", "''"]),
    ("0:x", ["time:load", "'0:x'"]),
    ("0:3~1", ["time:load~amplitude/period", "'0:3~1'"]),
    ("1:3", ["begin at time 0"]),
    ("0:3,0:4", ["increase", "from 0 to 0"]),
    ("0:3,2:4,1:5", ["increase", "from 2 to 1"]),
    ("nan:3", ["start", "finite", "not nan"]),
    ("0:3~4/2", ["amplitude", "at most the load 3", "not 4"]),
    ("0:3~-1/2", ["amplitude", "zero or a positive number", "not -1"]),
    ("0:3~1/0", ["period", "positive", "not 0"]),
    ("0:1," * 10**5, ["at most 10,000 phases"]),
    ("0:" + "(" * 10**5, ["time:load", "(((...", "not '0:((("]),
]


def assert_says(error: pytest.ExceptionInfo[InputError], words: list[str]) -> None:
    sentence = str(error.value)
    assert all(word in sentence for word in words), sentence
    assert re.fullmatch(r"[^\n]+\.", sentence)


@pytest.mark.parametrize(("options", "words"), REJECTED, ids=[repr(words) for _, words in REJECTED])
def test_an_invalid_scenario_is_rejected(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        Scenario(**{"pools": 5, "load": 2.0, **options})
    assert_says(error, words)


@pytest.mark.parametrize(("schedule", "words"), SCHEDULES, ids=[text[:20] or "nothing" for text, _ in SCHEDULES])
def test_an_invalid_schedule_is_rejected(schedule: str, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        Scenario(pools=5, schedule=schedule)
    assert_says(error, words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replications": 0}, ["replications", f"from 1 to {MAX_REPLICATIONS}", "not 0"]),
        ({"replications": 1000, "points": 10**4}, ["points times trajectories", "not 10000000"]),
        ({"seed": 2**64}, ["seed", "not 18446744073709551616"]),
        ({"batches": 1}, ["batches", "0 or at least 2", "not 1"]),
        ({"points": 1}, ["points", "0 or at least 2", "not 1"]),
        ({"workers": 10**6}, ["workers", "to 1024", "not 1000000"]),
        ({"mean_holding_times": 1}, ["mean_holding_times", "true or false", "not 1"]),
        ({"progress": "bar"}, ["progress", "function", "not 'bar'"]),
    ],
    ids=str,
)
def test_an_invalid_run_is_rejected(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        simulate(Scenario(pools=5, load=2.0, horizon=1.0), **options)
    assert_says(error, words)


def test_a_steady_state_of_a_varying_demand_is_rejected() -> None:
    for schedule in ("0:3,5:2", "0:3~1/2"):
        with pytest.raises(InputError, match="constant load"):
            simulate(Scenario(pools=5, schedule=schedule), mean_holding_times=True)


@pytest.mark.parametrize("scenario", [None, Scenario], ids=str)
def test_only_a_scenario_is_simulated(scenario: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as error:
        simulate(scenario)
    assert_says(error, ["scenario must be a Scenario"])


@pytest.mark.parametrize("scenarios", [5, [1], np.array(3)], ids=str)
def test_only_a_list_of_scenarios_is_compared(scenarios: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as error:
        compare(scenarios)
    assert_says(error, ["must be a"])


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        (["jsq", "random", "jsq"], ["each policy once", "'jsq' twice"]),
        ([["jsq"]], ["policy", "not ['jsq']"]),
        ("jsq", ["list of names", "not 'jsq'"]),
        (repeat("jsq"), ["each policy once"]),
    ],
    ids=str,
)
def test_policies_to_compare_are_distinct_names(policies: Any, words: list[str]) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as error:
        with_policies(Scenario(pools=1, load=1), policies)
    assert_says(error, words)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (("a", 1), ["start", "finite number", "not 'a'"]),
        ((0, 1, 1, [2]), ["period", "not [2]"]),
    ],
    ids=str,
)
def test_a_phase_takes_numbers_only(numbers: Any, words: list[str]) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as error:
        Phase(*numbers)
    assert_says(error, words)


def test_a_load_next_to_zero_is_simulated_without_a_warning() -> None:
    """The time to the next event overflows; pytest turns warnings into errors."""
    for policy in ("threshold", "jiq"):
        assert simulate(Scenario(policy=policy, pools=2, load=5e-324, horizon=1.0)).events == 0


def test_a_schedule_reads_back_as_it_prints() -> None:
    text = "0:5.5,20:10,33.25:8~2/6"
    phases = parse_schedule(text)
    assert phases == (Phase(0, 5.5), Phase(20, 10), Phase(33.25, 8, 2, 6))
    assert ",".join(map(str, phases)) == text


@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        ({}, 2),
        ({"alpha": 0.8}, 0),
        ({"threshold": 7, "alpha": 0.8}, 7),
        ({"policy": "jbt"}, 3),
        ({"policy": "jbt", "capacity": 2}, 2),
        ({"capacity": 2}, 1),
        ({"capacity": 9}, 2),
    ],
    ids=str,
)
def test_the_threshold_starts_as_given_or_at_its_default(options: dict[str, Any], threshold: int) -> None:
    assert Scenario(pools=5, load=2.7, **options).initial_threshold == threshold


def test_the_initial_tasks_are_spread_as_evenly_as_possible() -> None:
    for initial, tasks in ((1.5, [2, 2, 1, 1]), ([3, 0, 1, 0], [3, 0, 1, 0])):
        scenario = Scenario(pools=4, load=2.0, initial_tasks=initial)
        assert scenario.tasks_at_start().tolist() == tasks
        counts = [sum(count >= level for count in tasks) for level in range(max(tasks) + 1)]
        assert scenario.at_least_at_start().tolist() == counts


def test_any_fraction_of_initial_tasks_gives_the_same_counts_both_ways() -> None:
    for initial in np.linspace(0, 3, 61):
        scenario = Scenario(pools=7, load=2.0, initial_tasks=float(initial))
        tasks = scenario.tasks_at_start()
        counts = [int((tasks >= level).sum()) for level in range(int(tasks.max()) + 1)]
        assert scenario.at_least_at_start().tolist() == counts
        assert abs(tasks.sum() - 7 * initial) <= 0.5 + 1e-9
