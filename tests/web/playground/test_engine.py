"""The engine of the playground: going back in time, changing the past, and the points of the charts."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.web.playground.node import in_node

_SYSTEM = {
    "pools": 25,
    "load": 4.5,
    "threshold": 0,
    "alpha": None,
    "choices": 2,
    "delay": 0,
    "initial": 2,
    "seed": 9,
}
_SPECS = [
    {**_SYSTEM, "policy": "threshold", "alpha": "0.85", "exponential": False},
    {**_SYSTEM, "policy": "jsq", "delay": 0.1, "exponential": False},
    {**_SYSTEM, "policy": "jiq", "exponential": False},
]
_ACTIONS = [
    {"type": "average", "value": 0, "time": 1.75, "lane": -1},
    {"type": "kill", "value": 4, "time": 2.2, "lane": -1},
    {"type": "load", "value": 9, "time": 3.0, "lane": -1},
    {"type": "threshold", "value": 7, "time": 3.1, "lane": 0},
    {"type": "revive", "value": 4, "time": 5.3, "lane": -1},
]
_AVERAGE = {"type": "average", "value": 0, "lane": -1}
_START = {"type": "start", "specs": _SPECS, "actions": _ACTIONS}


def _to(time: float) -> dict[str, Any]:
    return {"type": "advance", "until": time}


def _seek(time: float) -> dict[str, Any]:
    return {"type": "seek", "time": time}


@pytest.fixture(scope="module")
def plays() -> dict[str, list[dict[str, Any]]]:
    wanted = {
        "at once": [_START, _to(9.0)],
        "in steps": [_START, *(_to(step * 0.37) for step in range(25)), _to(9.0)],
        "back and forth": [_START, _to(60.0), _seek(2.1), _seek(7.77), _seek(0.0), _seek(3.1), _seek(9.0)],
        "other past": [
            _START,
            _to(9.0),
            _seek(2.5),
            {"type": "act", "action": {"type": "load", "value": 2, "lane": -1}},
            _to(9.0),
        ],
        "the same past": [
            {**_START, "actions": [*_ACTIONS[:2], {"type": "load", "value": 2, "time": 2.5, "lane": -1}]},
            _to(9.0),
        ],
        "on a grid point": [_START, _to(2.5), {"type": "act", "action": _AVERAGE}],
        "the same again": [{**_START, "actions": [*_ACTIONS[:2], {**_AVERAGE, "time": 2.5}]}, _to(2.5)],
        "early": [_START, _to(1.0), {"type": "act", "action": {"type": "kill", "value": 7, "lane": -1}}],
        "settles": [
            _START,
            _to(1.0),
            {"type": "act", "action": {"type": "load", "value": 7, "lane": -1}, "settle": 3},
        ],
        "nonsense": [_START, _to(1.0), {"type": "act", "action": {"type": "revive", "value": 7, "lane": -1}}],
        "single events": [_START, *[{"type": "step"}] * 30],
    }
    return dict(zip(wanted, in_node("engine.mjs", list(wanted.values())), strict=True))


def _state(frame: dict[str, Any]) -> tuple[float, object]:
    return frame["time"], frame["lanes"]


def test_a_run_does_not_depend_on_how_it_is_watched(plays: dict[str, Any]) -> None:
    end = _state(plays["at once"][-1])
    assert end[0] == 9.0
    assert _state(plays["in steps"][-1]) == end
    assert _state(plays["back and forth"][-1]) == end
    assert plays["back and forth"][1]["checkpoints"] < 48


def test_an_action_in_the_past_replaces_what_came_after(plays: dict[str, Any]) -> None:
    frames = plays["other past"]
    assert [action["type"] for action in frames[-1]["actions"]] == ["average", "kill", "load"]
    assert frames[3]["keep"] == 2.5, "later points of the charts are no longer valid"
    assert _state(frames[-1]) == _state(plays["the same past"][-1])
    assert _state(frames[-1]) != _state(frames[1])


def test_the_planned_start_of_averages_stays(plays: dict[str, Any]) -> None:
    assert [(a["type"], a["time"]) for a in plays["early"][-1]["actions"]] == [("kill", 1.0), ("average", 1.75)]
    assert [(a["type"], a["time"]) for a in plays["settles"][-1]["actions"]] == [("load", 1.0), ("average", 4.0)]
    assert plays["nonsense"][-1]["actions"] == _ACTIONS, "a pool that is alive cannot be revived"


def test_chart_points_come_once_and_at_fixed_times(plays: dict[str, Any]) -> None:
    for name in ("at once", "in steps"):
        rows = [row for frame in plays[name] for row in frame["rows"]]
        assert [row[0] for row in rows] == [index / 16 for index in range(9 * 16 + 1)]
        assert all(len(row) == 1 + 7 * len(_SPECS) for row in rows)
    again = [row[0] for frame in plays["back and forth"][2:] for row in frame["rows"]]
    assert again == []


def test_an_action_at_a_point_of_the_charts_gives_the_same_point_again(plays: dict[str, Any]) -> None:
    rows = [
        [row for frame in plays[name] for row in frame["rows"]] for name in ("on a grid point", "the same again")
    ]
    assert rows[0] == rows[1] and rows[0][-1][0] == 2.5


def test_all_policies_have_the_same_arrivals(plays: dict[str, Any]) -> None:
    """Without delays, the number of tasks is the same at all times. A step is one event."""
    frames = plays["single events"]
    for frame in frames:
        totals = [sum(max(tasks, 0) for tasks in lane["tasks"]) for lane in frame["lanes"]]
        assert totals[0] == totals[2]
    counts = [frame["lanes"][0]["averages"]["events"] for frame in frames]
    assert counts[-1] >= 10 and max(b - a for a, b in itertools.pairwise(counts)) <= 1
