"""The lines about the threshold: few, and with every change in their count."""

from __future__ import annotations

import io
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.live.log import MAX_LINES_PER_SECOND, Log
from evenly.live.threshold_log import INTERVAL_S, ThresholdLog
from evenly.live.wire.protobuf import field
from tests.live.dispatcher.rig import fleet
from tests.live.processes import PATIENCE, Process, eventually
from tests.live.rig import Picker

if TYPE_CHECKING:
    import grpc


class Written:
    """A log in memory, with a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.stream = io.StringIO()
        self.log = Log(self.stream, clock=lambda: self.now)
        self.thresholds = ThresholdLog(self.log, clock=lambda: self.now)

    def goes(self, *thresholds: int, seconds: float = 0.0) -> list[tuple[int, int]]:
        """Go from one threshold to the next, each for some seconds. Return where all lines begin and end."""
        for before, threshold in pairwise(thresholds):
            self.thresholds.changed(before=before, threshold=threshold)
            self.now += seconds
            self.thresholds.catch_up()
        return [(line["before"], line["threshold"]) for line in self.lines()]

    def lines(self) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == "threshold changed"]


def test_changes_that_share_a_line_keep_their_range() -> None:
    written = Written()
    written.goes(1, 2, 4, 9, 2, 5)
    written.now += INTERVAL_S
    written.thresholds.catch_up()
    facts = {"before": 2, "threshold": 5, "lowest": 2, "highest": 9}
    assert [facts.items() <= line.items() for line in written.lines()] == [False, True]


def test_a_line_that_the_log_left_out_is_written_later() -> None:
    written = Written()
    for _ in range(MAX_LINES_PER_SECOND):
        written.log.event("flap")
    written.thresholds.changed(before=0, threshold=1)
    written.thresholds.changed(before=1, threshold=3)
    assert written.lines() == []
    written.now += 1
    written.thresholds.catch_up()

    assert [(line["before"], line["threshold"]) for line in written.lines()] == [(0, 3)]


def test_a_threshold_that_is_back_where_it_was_is_no_news() -> None:
    written = Written()
    written.thresholds.changed(before=32, threshold=33)
    for _ in range(3):
        for threshold in (34, 33):
            written.thresholds.changed(before=67 - threshold, threshold=threshold)
    written.now += INTERVAL_S
    written.thresholds.catch_up()
    written.thresholds.close()
    assert [(line["before"], line["threshold"]) for line in written.lines()] == [(32, 33)]


@pytest.mark.parametrize("seconds", [0.7, 7.0, 70.0])
def test_a_threshold_that_flickers_is_logged_once(seconds: float) -> None:
    written = Written()
    assert written.goes(10, *20 * (11, 10), seconds=seconds) == [(10, 11)]
    assert written.goes(10, 11, 12, seconds=INTERVAL_S)[1:] == [(11, 12)]  # and a change after that at once
    assert written.goes(12, *20 * (11, 12), seconds=seconds)[2:] == []


def test_three_thresholds_that_take_turns_are_logged_until_a_line_has_the_middle() -> None:
    written = Written()
    for _ in range(100):
        written.goes(10, 11, 12, 11, 10, seconds=3.0)
    assert len(written.lines()) <= 4


def test_every_step_of_a_drift_is_logged_at_once() -> None:
    written = Written()
    steps = [10, 11, 12, 13, 12, 11, 10, 9]
    written.goes(*steps, seconds=INTERVAL_S)
    # 12 is next to 13, and in the range of its line; then each is new again.
    assert written.goes() == [(10, 11), (11, 12), (12, 13), (13, 11), (11, 10), (10, 9)]


def test_a_change_after_a_rise_that_shared_a_line_is_logged_at_once() -> None:
    written = Written()
    written.goes(*range(41), seconds=0.1)
    written.now += INTERVAL_S
    written.thresholds.catch_up()
    assert written.goes() == [(0, 1), (1, 40)]
    written.now += INTERVAL_S
    assert written.goes(40, 20)[2:] == [(40, 20)]


def test_one_more_step_that_stays_is_logged_when_its_time_has_come() -> None:
    written = Written()
    written.goes(10, 11, 12, seconds=3.0)
    written.now += INTERVAL_S
    written.thresholds.catch_up()
    assert written.goes() == [(10, 11), (11, 12)]


Steps = st.lists(st.tuples(st.floats(0, 3), st.integers(-3, 3)), max_size=60)


@given(Steps)
def test_no_net_change_is_lost_and_lines_are_rare(steps: list[tuple[float, int]]) -> None:
    written, threshold = Written(), 100
    for seconds, more in steps:
        written.now += seconds
        written.thresholds.catch_up()
        if more:
            written.thresholds.changed(before=threshold, threshold=threshold + more)
        threshold += more
    assert len(written.lines()) <= 1 + (written.now - 1000.0) / INTERVAL_S
    written.thresholds.close()

    lines = written.lines()
    ends = [100, *(line["threshold"] for line in lines)]
    assert [line["before"] for line in lines] == ends[:-1]
    assert ends[-1] == threshold
    assert all(line["before"] != line["threshold"] for line in lines)
    assert all(line["lowest"] <= line["threshold"] <= line["highest"] for line in lines)


# --- real processes --------------------------------------------------------------------------------------------


def logged(process: Process) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in process.output().splitlines() if line.startswith('{"time"')]
    return [line for line in lines if line["event"] == "threshold changed"]


def check_lines(process: Process, seconds: float, threshold: int) -> None:
    """Stop the process and check its lines: the threshold rose one by one in this time."""
    before = len(logged(process))
    assert before <= 1 + seconds / INTERVAL_S
    assert process.kill(signal.SIGTERM) == 0
    lines = logged(process)
    assert len(lines) <= before + 1
    assert (lines[0]["before"], lines[-1]["threshold"]) == (0, threshold)


@contextmanager
def sessions(port: int) -> Iterator[grpc.StreamStreamMultiCallable]:
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield channel.stream_stream(
            "/envoy.service.ext_proc.v3.ExternalProcessor/Process", lambda sent: sent, lambda received: received
        )


def held(first: bytes, done: threading.Event) -> Iterator[bytes]:
    """Yield a message, and then nothing until the test is done."""
    yield first
    done.wait(PATIENCE)


def test_a_picker_under_load_writes_few_lines() -> None:
    pools = [word for port in (9001, 9002) for word in ("--pool", f"127.0.0.1:{port}")]
    with Picker("--alpha", "0.6", "--slow-start", "0", *pools) as picker, ExitStack() as stack:
        picker.wait()
        process = stack.enter_context(sessions(picker.port))
        done, open_calls = threading.Event(), []
        stack.callback(done.set)
        begun = time.monotonic()
        for _ in range(40):  # two seconds, in which there are twenty ticks
            open_calls.append(process(held(field(2, b"headers"), done), timeout=PATIENCE))
            next(open_calls[-1])
            time.sleep(0.05)
        threshold = picker.state()["threshold"]
        assert threshold == 20
        check_lines(picker, time.monotonic() - begun, threshold)


@pytest.mark.full
def test_a_dispatcher_under_load_writes_few_lines() -> None:
    with fleet("--lease=600", pools=("a", "b")) as (dispatcher, _):
        eventually(lambda: dispatcher.events("pool added"), lambda added: len(added) == 2)
        begun = time.monotonic()
        while time.monotonic() < begun + 3:  # it looks every half second
            dispatcher.post({"count": 2})
        threshold = dispatcher.state()["threshold"]
        check_lines(dispatcher, time.monotonic() - begun, threshold)
