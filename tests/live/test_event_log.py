"""The log's names and facts for the balancer's events: operators and alerts rely on both."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

from evenly.live.addresses import Address
from evenly.live.balancer.events import (
    AlphaChanged,
    BalancerEvent,
    PoolAdded,
    PoolEvent,
    PoolFailed,
    PoolGone,
    PoolStateChanged,
    PoolWeightChanged,
    ThresholdChanged,
)
from evenly.live.balancer.lifecycle import State
from evenly.live.log import LEVELS, Log
from evenly.live.picker.event_log import EventLog

POOL, ENDPOINT = Address("pool.example", 80), Address("::1", 80)


def change(before: State, state: State, name: str) -> tuple[BalancerEvent, dict[str, object]]:
    """Return a change of state and its log line."""
    event = PoolStateChanged(pool=POOL, before=before, state=state, sessions=3)
    return event, {"event": name, "pool": "pool.example:80", "before": str(before), "sessions": 3}


def failure(seconds: float | None, since: str | None) -> tuple[BalancerEvent, dict[str, object]]:
    """Return a failure and its log line."""
    state = {"pool": POOL, "before": State.SERVING, "state": State.FAILING, "sessions": 3}
    event = PoolFailed(**state, reason="health check failed", seconds=seconds, lost=2)  # type: ignore[arg-type]
    facts = {"before": "serving", "sessions": 3, "lost": 2, "reason": "health check failed", "since": since}
    return event, {"event": "pool failing", "pool": "pool.example:80", **facts}


NAMED: list[tuple[BalancerEvent, dict[str, object]]] = [
    (
        PoolAdded(pool=POOL, endpoint=ENDPOINT),
        {"event": "pool added", "pool": "pool.example:80", "endpoint": "[::1]:80", "weight": 1.0},
    ),
    (
        PoolWeightChanged(pool=POOL, before=1.0, weight=2.5),
        {"event": "pool weight changed", "pool": "pool.example:80", "before": 1.0, "weight": 2.5},
    ),
    change(State.WARMING, State.SERVING, "pool serving"),
    change(State.FAILING, State.WARMING, "pool warming"),
    change(State.DRAINING, State.CHECKING, "pool checking"),
    failure(1.5, "2026-11-15T16:59:58.500Z"),
    failure(None, None),
    change(State.FAILING, State.DRAINING, "pool draining"),
    change(State.DRAINING, State.LEAVING, "pool leaving"),
    (PoolGone(pool=POOL), {"event": "pool gone", "pool": "pool.example:80"}),
    (
        ThresholdChanged(before=2, threshold=5),
        {"event": "threshold changed", "before": 2, "threshold": 5, "lowest": 2, "highest": 5},
    ),
    (
        AlphaChanged(before=0.5, alpha=0.85, reason="recommended for 6 pools"),
        {"event": "alpha changed", "before": 0.5, "alpha": 0.85, "reason": "recommended for 6 pools"},
    ),
]


def test_an_event_is_a_line_of_the_log() -> None:
    for event, line in NAMED:
        stream = io.StringIO()
        EventLog(Log(stream, clock=lambda: 1_794_762_000.0)).write(event)
        logged = json.loads(stream.getvalue())
        assert logged.pop("level") == ("warning" if line["event"] == "pool failing" else "info")
        assert list(logged.items()) == [("time", "2026-11-15T17:00:00.000Z"), *line.items()]


def kinds(of: type[BalancerEvent]) -> Iterator[type[BalancerEvent]]:
    yield of
    for child in of.__subclasses__():
        yield from kinds(child)


def test_every_event_and_every_state_has_a_name() -> None:
    assert set(kinds(BalancerEvent)) - {BalancerEvent, PoolEvent} == {type(event) for event, _ in NAMED}
    assert {event.state for event, _ in NAMED if isinstance(event, PoolStateChanged)} == set(State)


def test_every_name_with_a_level_is_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "live.md").read_text(encoding="utf-8")
    assert [name for name in LEVELS if f"`{name}`" not in page] == []
