"""Which points a grid has, and what identifies them."""

import tracemalloc
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly import __version__
from evenly.errors import InputError
from evenly.sweeps.axes import read_axis
from evenly.sweeps.grid import Grid, make_grid
from evenly.sweeps.identity import hex_keys, is_among, lanes_of_keys
from evenly.sweeps.planning import make_plan
from tests.sweeps.support import SMALL, small_plan


def points(grid: Grid) -> list[dict[str, Any]]:
    return [grid.values(index) for index in range(len(grid))]


def test_lists_multiply_and_the_last_varies_fastest() -> None:
    grid = make_grid({"policy": ("jsq",), "load": (1.0, 2.0), "pools": (5, 6, 7)})
    assert [(each["load"], each["pools"]) for each in points(grid)] == [*product((1.0, 2.0), (5, 6, 7))]


def test_a_parameter_is_left_out_where_the_policy_does_not_take_it() -> None:
    grid = make_grid({"policy": ("jsq", "threshold"), "alpha": ("0.8", "0.9"), "load": (1.0, 2.0)})
    found = [(each["policy"], each.get("alpha"), each["load"]) for each in points(grid)]
    assert found == [("jsq", None, 1.0), ("jsq", None, 2.0), *product(("threshold",), ("0.8", "0.9"), (1.0, 2.0))]


def test_a_parameter_that_no_policy_takes_is_refused() -> None:
    with pytest.raises(InputError, match="alpha is for policy threshold or threshold-utility, not jsq or random"):
        make_grid({"policy": ("jsq", "random"), "alpha": ("0.8",)})


def test_zipped_options_vary_together() -> None:
    axes = {"policy": ("jsq", "threshold"), "alpha": ("0.8", "0.9"), "pools": (5, 6), "load": (1.0, 2.0)}
    found = points(make_grid(axes, [("alpha", "pools")]))
    assert len(found) == 2 * 2 * 2
    assert {(each.get("alpha"), each["pools"]) for each in found if each["policy"] == "threshold"} == {
        ("0.8", 5),
        ("0.9", 6),
    }
    with_policy = points(make_grid({**axes, "policy": ("jsq", "threshold")}, [("policy", "alpha")]))
    assert {(each["policy"], each.get("alpha")) for each in with_policy} == {("jsq", None), ("threshold", "0.9")}


def test_zipped_rows_that_a_policy_cannot_tell_apart_are_one_point() -> None:
    axes = {"policy": ("jsq", "threshold"), "alpha": ("0.8", "0.9", "0.7"), "pools": (5, 5, 6), "load": (1.0,)}
    found = points(make_grid(axes, [("alpha", "pools")]))
    assert [each["pools"] for each in found if each["policy"] == "jsq"] == [5, 6]
    assert len(found) == 2 + 3


@pytest.mark.parametrize(
    ("zipped", "message"),
    [
        ("alpha,load", "Options that are zipped need equal numbers of values, but alpha has 3 and load has 2."),
        ("alpha", 'zip must name at least two options, as in "alpha,pools", not'),
        ("alpha,alpha", "zip must name each option once"),
        ("alpha,delay", "zip names delay, which has no values"),
        (7, "zip must name at least two options"),
    ],
)
def test_a_zip_that_does_not_fit_is_refused(zipped: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_plan(SMALL, zipped)


def test_an_identity_depends_on_values_and_on_nothing_else() -> None:
    one = make_plan({**SMALL, "load": "2.5", "alpha": 0.9})
    other = make_plan(
        {"horizon": "5", "alpha": "0.90", "policy": "threshold", "load": "1.5:2.5:1", "pools": [5, 7], "seed": 1}
    )
    mine = one.identities(np.arange(1))
    theirs = other.identities(np.arange(len(other.grid)))
    assert is_among(mine, theirs[np.argsort(theirs[:, 0])]).all()
    assert len(np.unique(theirs, axis=0)) == len(other.grid) == 4
    changes: list[dict[str, Any]] = [
        {"seed": 2}, {"replications": 2}, {"pools": 6}, {"warmup": 1}, {"batches": 5}, {"delay": 0.1},
        {"steady_state": True}, {"service": "deterministic"}, {"initial_tasks": [(1, 0, 0, 0, 0)]},
    ]  # fmt: skip
    changed = [
        make_plan({**SMALL, "load": 2.5, "alpha": 0.9, **change}).identities(np.arange(1)) for change in changes
    ]
    changed.append(make_plan({**SMALL, "load": 2.5, "alpha": 0.9}, until="spread < 1").identities(np.arange(1)))
    assert len(np.unique(np.concatenate([mine, *changed]), axis=0)) == len(changed) + 1


def test_the_same_point_has_the_same_identity_and_seed_in_every_release() -> None:
    """Files of earlier sweeps stay useful only as long as these numbers do not change."""
    plan = make_plan({**SMALL, "load": 2.5, "alpha": 0.9})
    assert plan.version == __version__
    assert plan.seeds(np.arange(1)) == [2560984892480248096]
    assert hex_keys(plan.grid.lanes(np.arange(1))) == ["f4bfc740089d48679ad93aee9e7c42e7"]


def test_seeds_do_not_depend_on_the_number_of_replications() -> None:
    one, two = (make_plan({**SMALL, "replications": count}) for count in (1, 2))
    indices = np.arange(len(one.grid))
    assert one.seeds(indices) == two.seeds(indices)
    assert len(set(one.seeds(indices))) == len(one.grid)
    other = make_plan({**SMALL, "seed": 2})
    assert not set(one.seeds(indices)) & set(other.seeds(indices))


def test_a_changed_policy_makes_new_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from evenly.core import JoinShortestQueue\nclass Mine(JoinShortestQueue):\n    pass\n"
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for name, text in (("mine_a", source), ("mine_b", source + "# changed\n")):
        (tmp_path / f"{name}.py").write_text(text)
        plan = make_plan({"pools": 5, "load": 1.5, "policy": f"{name}:Mine", "horizon": 1})
        found.append(plan.identities(np.arange(1)).tolist())
    assert found[0] != found[1]


def test_identities_can_be_written_and_read() -> None:
    lanes = small_plan().identities(np.arange(6))
    keys = hex_keys(lanes)
    assert {len(key) for key in keys} == {32}
    assert np.array_equal(lanes_of_keys(keys), lanes)
    known = lanes[[1, 4]][np.argsort(lanes[[1, 4], 0])]
    assert is_among(lanes, known).tolist() == [False, True, False, False, True, False]
    assert not is_among(lanes, lanes[:0]).any()


@pytest.mark.parametrize("count", [1, 6, 97])
def test_the_order_has_every_point_once_and_covers_the_grid_early(count: int) -> None:
    order = [*make_grid({"policy": ("jsq",), "pools": tuple(range(1, count + 1))}).order()]
    assert sorted(order) == [*range(count)]
    if count > 50:
        assert set(np.array(order[:20]) * 5 // count) == {*range(5)}


def test_a_million_points_take_little_memory() -> None:
    """No clock here: bench/sweeps.py says how long it takes."""
    tracemalloc.start()
    plan = make_plan(
        {"pools": 10, "alpha": read_axis("alpha", "0.001:0.999:0.001"), "load": "0.01:10.01:0.01", "horizon": 1}
    )
    assert len(plan.grid) == 999 * 1001
    for _, index in zip(range(1000), plan.grid.order(), strict=False):
        plan.grid.values(index)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


def test_too_many_points_are_refused() -> None:
    with pytest.raises(InputError, match="A sweep has at most 10000000 points, not 100000000"):
        make_plan({"pools": "1:10000:1", "load": "0.001:10:0.001"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"pools": "5,2.5"},
            "The point pools 2.5, load 1.5, alpha 0.7 is impossible. pools must be a",
        ),
        (
            {"alpha": None, "threshold": "1,7", "capacity": "8,4"},
            "The threshold must be at most 3 with",
        ),
        ({"policy": "nonsense"}, "policy must be one of"),
        ({"policy": "no_module:Mine", "alpha": None}, "no_module"),
        ({"seed": "1,-1"}, "seed must be a whole number"),
        ({"batches": 1}, "batches must be 0 or at least 2"),
        ({"horizon": "5,1", "warmup": 2}, "The warm-up must end before the horizon"),
    ],
)
def test_impossible_points_are_refused_before_anything_runs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        small_plan(**changes)
    assert message in str(refusal.value)


def test_an_impossible_corner_of_a_large_grid_is_found() -> None:
    with pytest.raises(InputError, match="The threshold must be at most"):
        make_plan({"pools": 5, "load": "0.1:10:0.1", "threshold": "1:100:1", "capacity": "120,60", "horizon": 1})
