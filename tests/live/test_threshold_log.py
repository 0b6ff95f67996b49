"""The lines about the threshold: few, and with every change in their count."""

from __future__ import annotations

import io
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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

    def lines(self) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.stream.getvalue().splitlines()]
        return [line for line in lines if line["event"] == "threshold changed"]


def test_changes_that_share_a_line_keep_their_range() -> None:
    written = Written()
    for threshold in (2, 4, 9, 2, 5):
        written.thresholds.changed(before=1, threshold=threshold, changes=3, epoch=threshold)
    written.now += INTERVAL_S
    written.thresholds.catch_up()
    facts = {"before": 1, "threshold": 5, "changes": 12, "lowest": 1, "highest": 9, "epoch": 5}
    assert [facts.items() <= line.items() for line in written.lines()] == [False, True]


def test_a_line_that_the_log_left_out_is_written_later() -> None:
    written = Written()
    for _ in range(MAX_LINES_PER_SECOND):
        written.log.event("flap")
    written.thresholds.changed(before=0, threshold=1, changes=1)
    written.thresholds.changed(before=1, threshold=3, changes=2)
    assert written.lines() == []
    written.now += 1
    written.thresholds.catch_up()

    assert [(line["before"], line["threshold"], line["changes"]) for line in written.lines()] == [(0, 3, 3)]


def test_a_threshold_that_is_back_where_it_was_is_no_news() -> None:
    written = Written()
    for threshold in (34, 33, 34, 33):
        written.thresholds.changed(before=67 - threshold, threshold=threshold, changes=2)
        written.now += INTERVAL_S
        written.thresholds.changed(before=threshold, threshold=threshold, changes=4)
    written.thresholds.changed(before=33, threshold=33, changes=1)
    written.now += INTERVAL_S
    written.thresholds.close()
    assert [(line["before"], line["threshold"]) for line in written.lines()] == [(33, 34), (34, 33)] * 2
    written.thresholds.changed(before=33, threshold=35, changes=1)
    assert [line["changes"] for line in written.lines()] == [2, 6, 6, 6, 6]


Steps = st.lists(st.tuples(st.floats(0, 3), st.integers(-3, 3), st.integers(1, 5)), max_size=60)


@given(Steps)
def test_no_change_is_lost_and_lines_are_rare(steps: list[tuple[float, int, int]]) -> None:
    written, threshold = Written(), 100
    for seconds, more, changes in steps:
        written.now += seconds
        written.thresholds.catch_up()
        written.thresholds.changed(before=threshold, threshold=threshold + more, changes=changes)
        threshold += more
    assert len(written.lines()) <= 1 + (written.now - 1000.0) / INTERVAL_S
    written.thresholds.close()

    ends = [100, *(line["threshold"] for line in written.lines())]
    assert ends[-1] == threshold
    written.thresholds.changed(before=threshold, threshold=threshold + 1, changes=1)
    written.thresholds.close()

    lines = written.lines()
    assert sum(line["changes"] for line in lines) == 1 + sum(changes for _, _, changes in steps)
    assert [line["before"] for line in lines] == ends
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
    assert sum(line["changes"] for line in lines) == threshold


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


def test_a_picker_under_load_writes_few_lines_and_counts_all_changes() -> None:
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
def test_a_dispatcher_under_load_writes_few_lines_and_counts_all_changes() -> None:
    with fleet("--lease=600", pools=("a", "b")) as (dispatcher, _):
        eventually(lambda: dispatcher.events("pool added"), lambda added: len(added) == 2)
        begun = time.monotonic()
        while time.monotonic() < begun + 3:  # it looks every half second
            dispatcher.post({"count": 2})
        threshold = dispatcher.state()["threshold"]
        check_lines(dispatcher, time.monotonic() - begun, threshold)
