"""The figures for Prometheus equal the balancer's own; the log and the histogram are correct."""

from __future__ import annotations

import io
import json
import math
import os
import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from evenly.core import JoinShortestQueue, LearningRule, ThresholdPolicy
from evenly.live.addresses import Address
from evenly.live.admin.metrics import balancer_metrics
from evenly.live.admin.schema import StoreView
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import BOUNDS, Latency
from evenly.live.balancer.lifecycle import State
from evenly.live.log import KEPT_LINES, MAX_LINES_PER_SECOND, Log

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def balancer(name: str = "threshold", pools: int = 3) -> Balancer:
    policy = ThresholdPolicy(0, LearningRule("0.6")) if name == "threshold" else JoinShortestQueue()
    made = Balancer(
        policy,
        name=name,
        choose=random.Random(1).choice,
        clock=lambda: 0.0,
        slow_start=10.0,
        report=lambda event: None,
    )
    for number in range(pools):
        made.add(Address("127.0.0.1", 9001 + number), Address("127.0.0.1", 9001 + number), slowly=False)
    return made


def parsed(pieces: Iterable[str]) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families("".join(pieces))
        for sample in family.samples
    }


def one(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def names(samples: Samples) -> set[str]:
    return {name for name, _ in samples}


# --- metrics ---------------------------------------------------------------------------------------------------


def test_every_figure_is_the_balancers() -> None:
    seen = balancer()
    opened = [session for session in (seen.open() for _ in range(7)) if session is not None]
    first, second, third = seen.pools
    for session in [session for session in opened if session.pool is first][:2]:
        session.close()
    next(session for session in opened if session.pool is second).served_by(third.endpoint)
    seen.set_unpicked(third, 4)
    seen.drain(third.address)

    samples = parsed(balancer_metrics(seen, Latency()))

    for pool in seen.pools:
        name = str(pool.address)
        assert one(samples, "evenly_pool_sessions", pool=name) == pool.sessions
        assert one(samples, "evenly_pool_unpicked_sessions", pool=name) == pool.unpicked
        assert one(samples, "evenly_pool_state", pool=name, state=str(pool.state)) == 1
    assert [third.state, third.unpicked] == [State.DRAINING, 4]
    assert sum(value for (name, _), value in samples.items() if name == "evenly_pool_state") == 3
    assert one(samples, "evenly_threshold") == seen.threshold == 2
    assert one(samples, "evenly_alpha") == 0.6
    assert seen.tokens is not None
    assert [one(samples, "evenly_tokens", color=color) for color in ("green", "yellow")] == list(seen.tokens)
    for kind in ("green", "yellow", "any"):
        assert one(samples, "evenly_picks_total", kind=kind) == seen.picks[kind]
    for color in ("green", "yellow", "resync", "other"):
        assert one(samples, "evenly_messages_total", color=color) == getattr(seen.messages, color)
    assert seen.messages.green > 0
    assert one(samples, "evenly_unpicked_sessions_total") == 4
    assert one(samples, "evenly_moved_sessions_total") == 1


def test_what_a_policy_does_not_have_is_absent() -> None:
    seen = balancer("jsq")
    seen.open()
    samples = parsed(balancer_metrics(seen, Latency()))

    assert not {"evenly_threshold", "evenly_alpha", "evenly_tokens"} & names(samples)
    assert one(samples, "evenly_picks_total", kind="jsq") == 1
    assert one(samples, "evenly_messages_total", color="other") == seen.messages.other


def test_the_figures_of_a_store_are_there_with_a_store_only() -> None:
    seen = balancer()
    seen.set_elsewhere(seen.pools[1], 6)
    own = {"evenly_pool_elsewhere_sessions", "evenly_store_available", "evenly_store_pickers"}
    assert not own & names(parsed(balancer_metrics(seen, Latency())))

    samples = parsed(balancer_metrics(seen, Latency(), StoreView(fleet="x", available=True, pickers=2)))
    counts = [one(samples, "evenly_pool_elsewhere_sessions", pool=str(pool.address)) for pool in seen.pools]
    assert counts == [0, 6, 0]
    assert (one(samples, "evenly_store_available"), one(samples, "evenly_store_pickers")) == (1, 2)
    assert one(samples, "evenly_pool_sessions", pool=str(seen.pools[1].address)) == 6


@given(st.lists(st.floats(0, 10), max_size=50))
def test_every_bucket_counts_what_is_at_most_its_bound(observed: list[float]) -> None:
    latency = Latency()
    for seconds in observed:
        latency.observe(seconds)

    assert (BOUNDS[0], BOUNDS[-1], list(BOUNDS)) == (1e-5, 1.0, sorted(BOUNDS))
    for bound, count in latency.cumulative():
        assert count == sum(seconds <= bound for seconds in observed)
    assert math.isclose(latency.total, sum(observed), abs_tol=1e-12)


# --- the log ---------------------------------------------------------------------------------------------------


class Written:
    """A log in memory, with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1_794_762_000.123
        self.stream = io.StringIO()
        self.log = Log(self.stream, clock=lambda: self.now)

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line, parse_constant=pytest.fail) for line in self.stream.getvalue().splitlines()]


def test_an_event_is_one_line_of_json() -> None:
    written = Written()
    written.log.event("pool failing", pool="127.0.0.1:9001", before=State.SERVING, sessions=3, mean=0.5, why=None)

    assert written.stream.getvalue().count("\n") == 1
    assert written.lines() == [
        {
            "time": "2026-11-15T17:00:00.123Z",
            "event": "pool failing",
            "level": "warning",
            "pool": "127.0.0.1:9001",
            "before": "serving",
            "sessions": 3,
            "mean": 0.5,
            "why": None,
        }
    ]


class Secretive:
    def __str__(self) -> str:
        return "line one\nline two"


def test_values_without_json_form_become_text_on_the_same_line() -> None:
    rows: list[tuple[object, str]] = [
        (Address("::1", 80), "[::1]:80"),
        (Secretive(), "line one\nline two"),
        (OSError(2, "No such file"), "[Errno 2] No such file"),
        (b"\xff", "b'\\xff'"),
        (math.inf, "inf"),
        (math.nan, "nan"),
        ({1: math.nan}, "{1: nan}"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        ("\ud800 \u00e9 \x1b[31m", "\ud800 \u00e9 \x1b[31m"),
    ]
    for fact, shown in rows:
        written = Written()
        written.log.event("odd", fact=fact)

        assert written.stream.getvalue().count("\n") == 1
        assert written.stream.getvalue().isascii()
        assert [line["fact"] for line in written.lines()] == [shown]


def test_a_flood_is_cut_off_and_counted() -> None:
    written = Written()
    for number in range(MAX_LINES_PER_SECOND + 250):
        written.log.event("flap", number=number)
    assert len(written.lines()) == MAX_LINES_PER_SECOND
    written.log.catch_up()
    assert len(written.lines()) == MAX_LINES_PER_SECOND

    written.now += 1
    written.log.event("calm")
    assert [line["event"] for line in written.lines()[MAX_LINES_PER_SECOND:]] == ["lines left out", "calm"]
    assert written.lines()[MAX_LINES_PER_SECOND]["lines"] == 250


def test_an_endless_flood_stays_below_the_limit_and_every_line_is_accounted_for() -> None:
    written = Written()
    for step in range(10_000):
        written.now = 1000 + step / 1000
        written.log.event("flap")
    assert len(written.lines()) == 10 * MAX_LINES_PER_SECOND

    written.now += 1
    written.log.catch_up()
    flaps = sum(line["event"] == "flap" for line in written.lines())
    left_out = sum(int(str(line["lines"])) for line in written.lines() if line["event"] == "lines left out")
    assert flaps + left_out == 10_000


def test_the_last_lines_are_kept_with_their_numbers() -> None:
    written = Written()
    for number in range(1, 2 * KEPT_LINES + 1):
        written.now += 0.1
        written.log.event("something", number=number)
    assert [line.number for line in written.log.recent] == list(range(KEPT_LINES + 1, 2 * KEPT_LINES + 1))
    assert all(line.facts == {"number": line.number} for line in written.log.recent)


def _closed() -> TextIO:
    stream = io.StringIO()
    stream.close()
    return stream


def _without_a_reader() -> TextIO:
    reading, writing = os.pipe()
    os.close(reading)
    return io.TextIOWrapper(io.FileIO(writing, "w"), write_through=True)


def _full_disk() -> TextIO:
    return io.TextIOWrapper(io.FileIO("/dev/full", "w"), write_through=True)


def test_a_stream_that_fails_is_not_the_callers_problem() -> None:
    rows: list[Callable[[], TextIO | None]] = [_closed, _without_a_reader, _full_disk, lambda: None]
    for broken in rows:
        stream = broken()
        log = Log(stream)

        for _ in range(MAX_LINES_PER_SECOND):
            log.event("written nowhere")
            log.catch_up()

        if stream is not None:
            with suppress(OSError):
                stream.close()
