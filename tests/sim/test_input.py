"""Bad input is rejected in one sentence, which says what was given and what is allowed."""

import math
import re
from decimal import Decimal
from itertools import repeat
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim import Phase, Scenario, compare, simulate, with_policies
from evenly.sim.run import MAX_REPLICATIONS
from evenly.workload.demand import parse_schedule

NAN, INF = math.nan, math.inf

# The input, and words of the sentence.
REJECTED: list[tuple[dict[str, Any], list[str]]] = [
    ({"policy": "best"}, ["'best'", "threshold, jsq, power-of-d, random, round-robin, jiq, jbt, pull"]),
    ({"pools": 0}, ["pools", "from 1 to 1000000000", "not 0"]),
    ({"pools": -3}, ["pools", "not -3"]),
    ({"pools": 5.0}, ["pools", "whole number", "not 5.0"]),
    ({"pools": True}, ["pools", "whole number", "not True"]),
    ({"pools": 2 * 10**9}, ["pools", "to 1000000000", "not 2000000000"]),
    ({"pools": 10**8, "policy": "jiq"}, ["pools", "to 10000000", "not 100000000"]),
    ({"pools": 10**7, "policy": "jiq", "load": 100.0}, ["jiq stores every task", "100000000", "10000000 pools"]),
    ({"load": None}, ["load", "schedule"]),
    ({"schedule": "0:3"}, ["load or a schedule", "not both"]),
    ({"load": -1.5}, ["load", "positive", "not -1.5"]),
    ({"load": 0}, ["load", "positive", "not 0"]),
    ({"load": NAN}, ["load", "positive", "not nan"]),
    ({"load": INF}, ["load", "positive", "not inf"]),
    ({"load": "3"}, ["load", "positive", "not '3'"]),
    ({"load": 2e6}, ["load", "at most 1000000", "not 2000000.0"]),
    ({"alpha": 0}, ["alpha", "strictly between 0 and 1", "not 0"]),
    ({"alpha": 1}, ["alpha", "strictly between 0 and 1", "not 1"]),
    ({"alpha": 1.2}, ["alpha", "strictly between 0 and 1", "not 1.2"]),
    ({"alpha": -0.1}, ["alpha", "strictly between 0 and 1", "not -0.1"]),
    ({"alpha": "abc"}, ["alpha", "strictly between 0 and 1", "not 'abc'"]),
    ({"alpha": NAN}, ["alpha", "strictly between 0 and 1", "not nan"]),
    ({"alpha": INF}, ["alpha", "strictly between 0 and 1", "not inf"]),
    ({"alpha": Decimal("NaN")}, ["alpha", "strictly between 0 and 1", "not NaN"]),
    ({"alpha": "1e-999999999"}, ["alpha", "1e-999999999"]),
    ({"warmup": 200.0}, ["warm-up", "before the horizon 200", "not at 200"]),
    ({"warmup": 300.0}, ["warm-up", "before the horizon 200", "not at 300"]),
    ({"warmup": -1.0}, ["warmup", "zero or a positive", "not -1"]),
    ({"warmup": NAN}, ["warmup", "not nan"]),
    ({"horizon": 0}, ["horizon", "positive", "not 0"]),
    ({"horizon": -2.0}, ["horizon", "positive", "not -2"]),
    ({"horizon": INF}, ["horizon", "positive", "not inf"]),
    ({"service_rate": 0}, ["service_rate", "from 1e-100 to 1e+100", "not 0"]),
    ({"service_rate": -1.0}, ["service_rate", "from 1e-100 to 1e+100", "not -1"]),
    ({"service_rate": NAN}, ["service_rate", "from 1e-100 to 1e+100", "not nan"]),
    ({"service_rate": 1e-320}, ["service_rate", "from 1e-100", "not 1e-320"]),
    ({"service_rate": 10**32}, ["4e+35 events", "beyond 1e+15", "Reduce horizon"]),
    ({"service_rate": 10**60}, ["events", "beyond 1e+15", "Reduce horizon"]),
    ({"service_rate": int("9" * 400)}, ["service_rate", "to 1e+100", "not 999999"]),
    ({"service_rate": 10**5000}, ["service_rate", "thousands of digits"]),
    ({"horizon": 1e15}, ["events", "beyond 1e+15", "Reduce horizon"]),
    ({"horizon": 1e200}, ["horizon", "to 1e+100", "not 1e+200"]),
    ({"horizon": 1e-308}, ["horizon", "from 1e-15", "not 1e-308"]),
    ({"load": 1e-5, "service_rate": 1e16}, ["events", "too many"]),
    (
        {"load": 1, "arrivals": "bursty:ratio=2,share=0.5,length=1e-6", "horizon": 3e10},
        ["events", "too many", "make bursts longer"],
    ),
    ({"load": None, "schedule": "0:2~1/1e-11"}, ["period", "at least 2e-10", "not 1e-11"]),
    ({"load": None, "schedule": "0:2~1/1e-308"}, ["period", "at least 1e-100", "not 1e-308"]),
    ({"load": None, "schedule": [1, 2]}, ["schedule", "list of phases", "not [1, 2]"]),
    ({"load": None, "schedule": 3}, ["schedule", "list of phases", "not [3]"]),
    ({"load": None, "schedule": {"start": 0}}, ["schedule", "list of phases"]),
    ({"load": [1]}, ["load", "positive", "not [1]"]),
    ({"pools": "many"}, ["pools", "whole number", "not 'many'"]),
    ({"pools": 10**60}, ["pools", "whole number"]),
    ({"policy": ["jsq"]}, ["policy", "not ['jsq']"]),
    ({"policy": None}, ["policy", "not None"]),
    ({"threshold": 10**60}, ["threshold", "to 1000000"]),
    ({"capacity": 10**60}, ["capacity", "to 1000000"]),
    ({"warmup": "x"}, ["warmup", "not 'x'"]),
    ({"horizon": None}, ["horizon", "not None"]),
    ({"policy": "power-of-d", "sample_size": 6}, ["sample_size", "1 to 5", "number of pools", "not 6"]),
    ({"policy": "power-of-d", "sample_size": 0}, ["sample_size", "1 to 5", "not 0"]),
    ({"policy": "power-of-d", "sample_size": 1.5}, ["sample_size", "whole number", "not 1.5"]),
    ({"policy": "power-of-d", "sample_size": 600, "pools": 1000}, ["sample_size", "from 1 to 512", "not 600"]),
    ({"initial": [1, 2]}, ["initial", "5 numbers", "not 2"]),
    ({"initial": np.array(3)}, ["initial_tasks", "flat list", "not an array of 0 dimensions"]),
    ({"initial": np.ones((5, 1), int)}, ["initial_tasks", "flat list", "not an array of 2 dimensions"]),
    ({"initial": []}, ["initial", "5 numbers", "not 0"]),
    ({"initial": [1, 2, 3, 4, -1]}, ["initial", "not -1"]),
    ({"initial": [1, 2, 3, 4, 1.5]}, ["initial", "whole number", "not 1.5"]),
    ({"initial": "12345"}, ["initial", "number from 0", "not '12345'"]),
    ({"initial": -1}, ["initial", "number from 0 to 1000000", "not -1"]),
    ({"initial": None}, ["initial", "not None"]),
    ({"initial": NAN}, ["initial", "not nan"]),
    ({"initial": 2e6}, ["initial", "number from 0 to 1000000", "not 2000000.0"]),
    ({"capacity": 0}, ["capacity", "whole number from 1", "not 0"]),
    ({"capacity": 2.5}, ["capacity", "whole number", "not 2.5"]),
    ({"capacity": 2, "threshold": 2}, ["threshold", "at most 1 with capacity 2", "not 2"]),
    ({"capacity": 2, "threshold": 2, "alpha": 0.5}, ["threshold", "at most 1 with capacity 2", "not 2"]),
    ({"capacity": 3, "initial": 4}, ["initial", "capacity 3", "not 4"]),
    ({"capacity": 3, "initial": 3.5}, ["initial", "capacity 3", "not 4"]),
    ({"capacity": 3, "initial": [0, 0, 0, 0, 9]}, ["initial", "capacity 3", "not 9"]),
    ({"threshold": -1}, ["threshold", "from 0", "not -1"]),
    ({"threshold": 1.5}, ["threshold", "whole number", "not 1.5"]),
    ({"policy": "jbt", "threshold": 0}, ["threshold", "from 1", "not 0"]),
    ({"policy": "jbt", "threshold": 4, "capacity": 3}, ["threshold", "at most 3 with capacity 3", "not 4"]),
    ({"policy": "pull"}, ["pull", "capacity"]),
    ({"policy": "pull", "pools": 10**6, "capacity": 10**6}, ["pull", "1000000"]),
]

SCHEDULES: list[tuple[str, list[str]]] = [
    ("", ["time:load", "''"]),
    ("3", ["time:load", "'3'"]),
    ("0:", ["time:load", "'0:'"]),
    ("0:x", ["time:load", "'0:x'"]),
    ("0:3;5:2", ["time:load", "'0:3;5:2'"]),
    ("0:3,", ["time:load", "''"]),
    ("0:3~1", ["time:load~amplitude/period", "'0:3~1'"]),
    ("0:3~/2", ["time:load~amplitude/period", "'0:3~/2'"]),
    ("1:3", ["begin at time 0"]),
    ("-1:3,0:2", ["begin at time 0"]),
    ("0:3,5:2,4:1", ["increase", "from 5 to 4"]),
    ("0:3,0:4", ["increase", "from 0 to 0"]),
    ("0:-1", ["load", "from 0 to 1000000", "not -1"]),
    ("0:nan", ["load", "from 0 to 1000000", "not nan"]),
    ("nan:3", ["start", "finite", "not nan"]),
    ("0:inf", ["load", "from 0 to 1000000", "not inf"]),
    ("0:3~4/2", ["amplitude", "at most the load 3", "not 4"]),
    ("0:3~-1/2", ["amplitude", "zero or a positive", "not -1"]),
    ("0:3~1/0", ["period", "positive", "not 0"]),
    ("0:3~1/-2", ["period", "positive", "not -2"]),
    (",".join(f"{start}:1" for start in range(10_001)), ["at most 10,000 phases"]),
    ("0:1," * 10**5, ["at most 10,000 phases"]),
    ("0:" + "(" * 10**5, ["time:load", "(((...", "not '0:((("]),
    ("0:1\0", ["time:load"]),
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


def test_a_schedule_without_phases_is_rejected() -> None:
    with pytest.raises(InputError, match="begin at time 0"):
        Scenario(pools=5, schedule=[])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replications": 0}, ["replications", f"from 1 to {MAX_REPLICATIONS}", "not 0"]),
        ({"replications": -2}, ["replications", "not -2"]),
        ({"replications": 10**7}, ["replications", "not 10000000"]),
        ({"replications": 2.5}, ["replications", "whole number", "not 2.5"]),
        ({"replications": 1000, "points": 10**4}, ["points times trajectories", "not 10000000"]),
        ({"seed": -1}, ["seed", "from 0", "not -1"]),
        ({"seed": 2**64}, ["seed", "not 18446744073709551616"]),
        ({"seed": 1.5}, ["seed", "whole number", "not 1.5"]),
        ({"batches": -1}, ["batches", "not -1"]),
        ({"batches": 1}, ["batches", "0 or at least 2", "not 1"]),
        ({"batches": 10**5}, ["batches", "to 10000", "not 100000"]),
        ({"batches": 2.5}, ["batches", "whole number", "not 2.5"]),
        ({"points": -1}, ["points", "not -1"]),
        ({"points": 1}, ["points", "0 or at least 2", "not 1"]),
        ({"points": 10**6}, ["points", "to 100000", "not 1000000"]),
        ({"points": 2.5}, ["points", "whole number", "not 2.5"]),
        ({"workers": -1}, ["workers", "not -1"]),
        ({"workers": 10**6}, ["workers", "to 1024", "not 1000000"]),
        ({"mean_holding_times": "no"}, ["mean_holding_times", "true or false", "not 'no'"]),
        ({"mean_holding_times": 1}, ["mean_holding_times", "true or false", "not 1"]),
        ({"progress": "bar"}, ["progress", "function", "not 'bar'"]),
        ({"seed": "one"}, ["seed", "whole number", "not 'one'"]),
        ({"batches": True}, ["batches", "whole number", "not True"]),
        ({"points": [1]}, ["points", "whole number", "not [1]"]),
        ({"trajectories": -1}, ["trajectories", "not -1"]),
    ],
    ids=str,
)
def test_an_invalid_run_is_rejected(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        simulate(Scenario(pools=5, load=2.0, horizon=1.0), **options)
    assert_says(error, words)


@pytest.mark.parametrize("schedule", ["0:3,5:2", "0:3~1/2"])
def test_a_steady_state_of_a_varying_demand_is_rejected(schedule: str) -> None:
    with pytest.raises(InputError, match="constant load"):
        simulate(Scenario(pools=5, schedule=schedule), mean_holding_times=True)


@pytest.mark.parametrize("scenario", [{}, None, "jsq", 5, [], Scenario], ids=str)
def test_only_a_scenario_is_simulated(scenario: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as error:
        simulate(scenario)
    assert_says(error, ["scenario must be a Scenario"])


@pytest.mark.parametrize("scenarios", [None, 5, "jsq", [1], np.array(3), Scenario(pools=1, load=1)], ids=str)
def test_only_a_list_of_scenarios_is_compared(scenarios: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as error:
        compare(scenarios)
    assert_says(error, ["must be a"])


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        (["jsq", "random", "jsq"], ["each policy once", "'jsq' twice"]),
        (["best"], ["policy", "not 'best'"]),
        ([["jsq"]], ["policy", "not ['jsq']"]),
        ("jsq", ["list of names", "not 'jsq'"]),
        (3, ["list of names", "not 3"]),
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
        ((0, "x"), ["load", "not 'x'"]),
        ((0, None), ["load", "not None"]),
        ((0, 1, "y"), ["amplitude", "not 'y'"]),
        ((0, 1, 1, [2]), ["period", "not [2]"]),
        ((0, 10**400), ["load", "not 1000"]),
        ((math.inf, 1), ["start", "not inf"]),
    ],
    ids=str,
)
def test_a_phase_takes_numbers_only(numbers: Any, words: list[str]) -> None:  # noqa: ANN401
    with pytest.raises(InputError) as error:
        Phase(*numbers)
    assert_says(error, words)


@pytest.mark.parametrize("load", [1e-308, 5e-324])
def test_a_load_next_to_zero_is_simulated_without_a_warning(load: float) -> None:
    """The time to the next event overflows; pytest turns warnings into errors."""
    for policy in ("threshold", "jiq"):
        assert simulate(Scenario(policy=policy, pools=2, load=load, horizon=1.0)).events == 0


def test_nothing_to_compare_compares_to_nothing() -> None:
    assert list(compare([])) == []


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
        ({"threshold": 7}, 7),
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


@pytest.mark.parametrize(
    ("initial", "tasks"),
    [
        (0, [0, 0, 0, 0]),
        (2, [2, 2, 2, 2]),
        (1.5, [2, 2, 1, 1]),
        (0.25, [1, 0, 0, 0]),
        ([3, 0, 1, 0], [3, 0, 1, 0]),
    ],
)
def test_the_initial_tasks_are_spread_as_evenly_as_possible(initial: float | list[int], tasks: list[int]) -> None:
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
