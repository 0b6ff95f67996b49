"""Lists and ranges, as they are written."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.errors import InputError
from evenly.sweeps.axes import option_name, option_names, read_all, read_axis, whole_options, written_form
from evenly.workload import Phase


@pytest.mark.parametrize(
    ("name", "written", "values"),
    [
        ("load", "2.5,5.5,9.9", (2.5, 5.5, 9.9)),
        ("load", [1, "2:3:0.5"], (1.0, 2.0, 2.5, 3.0)),
        ("alpha", "0.57,0.6:0.5:-0.05", ("0.57", "0.6", "0.55", "0.5")),
        ("alpha", [0.57, np.float32(0.9)], ("0.57", "0.9")),
        ("pools", "10..10000/7", (10, 32, 100, 316, 1000, 3162, 10000)),
        ("delay", "0.01..1/3,exponential:0.1,0", (0.01, 0.1, 1.0, "exponential:0.1", 0.0)),
        ("policy", "jsq, threshold,jsq", ("jsq", "threshold")),
        ("sizes", "8*1,2*4;5*1,5*2", ("8*1,2*4", "5*1,5*2")),
        ("service", "pareto:shape=1.5,ratio=50;erlang:stages=3", ("pareto:shape=1.5,ratio=50", "erlang:stages=3")),
        ("arrivals", "bursty:ratio=10,share=0.1,length=2", ("bursty:ratio=10,share=0.1,length=2",)),
        ("schedule", "0:5.5,20:10;0:3", ((Phase(0, 5.5), Phase(20, 10)), (Phase(0, 3),))),
        ("schedule", [Phase(0, 5.5), Phase(20, 10)], ((Phase(0, 5.5), Phase(20, 10)),)),
        ("initial_tasks", [1, (1, 2)], (1.0, (1, 2))),
        ("steady_state", [True, False], (True, False)),
        ("load", "what", ("what",)),  # the scenario says what is wrong with it
    ],
)
def test_values_are_read(name: str, written: object, values: tuple[Any, ...]) -> None:
    assert read_axis(name, written) == values


@pytest.mark.parametrize(
    ("name", "written", "message"),
    [
        ("load", "", "load must be a value, a list or a range, not ''."),
        ("load", [], "load must have at least one value"),
        ("load", "1:2:0", "a range first:last:step that a step leads through, not '1:2:0'."),
        ("load", "1:0:1", "a range first:last:step that a step leads through, not '1:0:1'."),
        ("load", "0:1e9:1e-9", "The number of values of load must be a whole number from 1 to 1000000"),
        ("load", "0..5/3", "0 < first < last"),
        ("load", "5..1/3", "0 < first < last"),
        ("load", "1..5/1", "2 to 1000000 values"),
        ("service", "nothing", "service must"),
    ],
)
def test_what_cannot_be_read_is_refused(name: str, written: object, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_all(name, written)
    assert message in str(refusal.value)


@given(st.integers(1, 999), st.integers(1, 40), st.integers(1, 999), st.integers(0, 3))
def test_steps_are_the_decimals_that_a_user_would_write(first: int, count: int, step: int, digits: int) -> None:
    scale = Decimal(10) ** -digits
    low, by = first * scale, step * scale
    found = read_axis("alpha", f"{low}:{low + (count - 1) * by}:{by}")
    assert [Decimal(value) for value in found] == [low + place * by for place in range(count)]
    assert read_axis("load", f"{low}:{low + (count - 1) * by}:{by}") == tuple(float(value) for value in found)


def test_names_of_options_are_those_of_scenarios_and_runs() -> None:
    assert {"pools", "load", "replications", "seed", "steady_state"} <= set(option_names())
    assert whole_options() == {
        *("pools", "threshold", "sample_size", "capacity", "sticky_margin", "replications", "seed", "batches"),
    }
    assert option_name("initial") == "initial_tasks"
    with pytest.raises(InputError, match="no option 'alhpa'; did you mean 'alpha'"):
        option_name("alhpa")


def test_columns_hold_plain_values() -> None:
    assert written_form("alpha", "0.57") == 0.57
    assert written_form("schedule", (Phase(0, 5.5), Phase(20, 10))) == "0:5.5,20:10"
    assert written_form("policy", InputError) == "evenly.errors:InputError"
    assert written_form("threshold", None) is None
