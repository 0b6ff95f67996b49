"""Features of all results: equality by value, a hash, one line, an HTML table, frames."""

import copy
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.frames import FrozenDict, Table, Tabular


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Found(Tabular):
    name: str
    values: Any
    shares: dict[int, float] = field(default_factory=dict)
    parts: Sequence["Found"] = ()
    seconds: float = field(default=0.0, compare=False)

    def columns(self) -> Mapping[str, Any]:
        return {"place": np.arange(len(self.values)), "value": self.values}

    def _headline(self) -> str:
        return f"{self.name}: mean {np.mean(self.values):.2f}"

    def _rows(self) -> list[tuple[str, str]]:
        return [("mean <of all>", f"{np.mean(self.values):.2f}")]


def found(**changed: object) -> Found:
    given: dict[str, Any] = {"name": "a", "values": np.array([1.0, 2.0]), "shares": {3: 0.5}}
    return Found(**{**given, **changed})


def test_equality_is_by_value_and_the_hash_agrees() -> None:
    one, same = found(parts=(found(),)), found(parts=[found(seconds=3.0)], seconds=9.0)
    assert one == same
    assert hash(one) == hash(same)
    assert len({one, same}) == 1


@pytest.mark.parametrize(
    "other",
    [
        found(name="b"),
        found(values=np.array([1.0, 2.5])),
        found(values=np.array([1.0])),
        found(values=np.array([[1.0, 2.0]])),
        found(shares={3: 0.4}),
        found(parts=[found()]),
        "a",
        None,
    ],
    ids=repr,
)
def test_any_difference_is_seen(other: object) -> None:
    assert found() != other


def test_nan_equals_itself() -> None:
    assert found(values=np.array([np.nan])) == found(values=np.array([np.nan]))
    assert found(values=np.array([np.nan])) != found(values=np.array([1.0]))


def test_a_result_is_one_line_and_a_table() -> None:
    assert repr(found()) == str(found()) == "Found(a: mean 1.50)"
    assert found()._repr_html_() == (
        "<table><caption>a: mean 1.50</caption><tbody>"
        '<tr><th style="text-align: left">mean &lt;of all&gt;</th><td>1.50</td></tr></tbody></table>'
    )


@pytest.mark.parametrize("result", [found(), Table(found().columns())], ids=["result", "table"])
def test_frames_have_the_columns(result: Found | Table) -> None:
    expected = {"place": [0, 1], "value": [1.0, 2.0]}
    assert result.to_pandas().to_dict("list") == expected
    assert result.to_polars().to_dict(as_series=False) == expected


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_missing_library_is_named_with_its_remedy(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    remedy = r"run pip install '\.\[frames\]' in a checkout of evenly\."
    with pytest.raises(InputError, match=rf"^Data frames need {library}: {remedy}$"):
        getattr(found(), f"to_{library}")()


def test_a_table_shows_its_first_rows_with_units() -> None:
    table = Table({"time": np.arange(12) / 4, "what": ["<x>"] * 12}, units={"time": "mean task times"})
    assert repr(table) == "Table(12 rows: time, what)"
    assert len(table) == 12
    assert list(table) == ["time", "what"]
    page = table._repr_html_()
    assert '<th title="mean task times">time</th>' in page
    assert page.count("&lt;x&gt;") == 10
    assert "first 10 of 12 rows" in page
    assert "<td>2.25</td>" in page
    assert "<td>2.5</td>" not in page


def test_tables_are_equal_by_value() -> None:
    assert Table({"a": np.array([1, 2])}) == Table({"a": [1, 2]})
    assert hash(Table({"a": np.array([1, 2])})) == hash(Table({"a": [1, 2]}))
    assert Table({"a": [1, 2]}) != Table({"a": [1, 3]})


def test_nan_equals_itself_in_a_table_and_is_null_in_json() -> None:
    table = Table({"a": np.array([1.0, np.nan]), "b": ["x", float("nan")]})
    assert table == Table({"a": [1.0, np.nan], "b": ["x", np.nan]})
    assert hash(table) == hash(Table({"a": [1.0, np.nan], "b": ["x", np.nan]}))
    assert table != Table({"a": [1.0, 2.0], "b": ["x", np.nan]})
    assert table.to_dict() == {"a": [1.0, None], "b": ["x", None]}


def copied(result: Found) -> list[Found]:
    return [result, copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))]


@pytest.mark.parametrize("place", range(4), ids=["made", "copied", "copied deeply", "unpickled"])
def test_frozen_means_frozen(place: int) -> None:
    result = copied(found(values=np.array([1.0, 2.0]), shares={3: 0.5, 4: np.array([1.0])}))[place]
    assert result == found(values=np.array([1.0, 2.0]), shares={3: 0.5, 4: np.array([1.0])})
    with pytest.raises(ValueError, match="read-only"):
        result.values[0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        result.shares[4][0] = 9.0  # type: ignore[index]
    shares: Any = result.shares
    changes: list[Callable[[], object]] = [
        lambda: shares.__setitem__(3, 1.0),
        lambda: shares.__delitem__(3),
        lambda: shares.__ior__({5: 1.0}),
        shares.clear,
        shares.popitem,
        lambda: shares.pop(3),
        lambda: shares.setdefault(5, 1.0),
        lambda: shares.update({3: 1.0}),
    ]
    for change in changes:
        with pytest.raises(TypeError, match="read-only"):
            change()
    assert isinstance(result.shares, FrozenDict)
    assert list(result.shares) == [3, 4]
    assert dict(result.shares) | {3: 1.0} == {3: 1.0, 4: np.array([1.0])}


def test_the_array_that_was_given_stays_writable() -> None:
    values = np.array([1.0, 2.0])
    found(values=values)
    values[0] = 3.0
