"""`--record`: what is written, when the file is full, moved or not ours, and when the disk takes no more."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from evenly.core import JoinShortestQueue
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.log import Log
from evenly.live.recorder import MAX_FILES, Recorder, RotatingFile, check_record
from evenly.logs import read_log
from evenly.logs.record import record_header, record_line

NOW = 1767225600.0


def recorded(path: Path, *durations: float, stopping: bool = False) -> Recorder:
    recorder = Recorder(path, Log(None), clock=lambda: NOW)
    if stopping:
        recorder.stopping()
    for duration in durations:
        recorder.ended("10.0.0.1:80", duration)
    recorder.close()
    return recorder


def test_sessions_are_in_the_file_when_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "sessions.csv"
    assert recorded(path, 0.1234567, 2.5).lost == 0
    assert path.read_text() == record_header() + (
        "1767225599.876543,0.123457,10.0.0.1:80,\n1767225597.5,2.5,10.0.0.1:80,\n"
    )
    recorded(path, 7.0, stopping=True)  # a restart goes on in the same file
    log = read_log(path)
    assert list(log.durations) == [7.0, 2.5, 0.123457]
    assert log.still_open == 1


def test_a_full_file_is_rotated_and_the_oldest_are_deleted(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = RotatingFile(path, max_bytes=200)
    for number in range(100):
        file.append(record_line(NOW + number, 1.0, "a").encode())
    file.close()
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["log", *(f"log.{number}" for number in range(1, MAX_FILES))]
    assert max(each.stat().st_size for each in tmp_path.iterdir()) <= 200
    log = read_log(path)
    assert log.skipped == 0
    assert log.origin + log.starts[-1] == NOW + 99
    assert len(log) == log.starts[-1] + 1  # no gap: only the oldest are gone


def test_a_batch_larger_than_a_file_is_written(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "log", max_bytes=10)
    for batch in (b"x" * 100, b"y" * 100):
        file.append(batch)
    file.close()
    assert (tmp_path / "log.1").read_text() == record_header() + "x" * 100
    assert (tmp_path / "log").read_text() == record_header() + "y" * 100


def test_a_file_that_was_moved_away_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = RotatingFile(path)
    file.append(record_line(NOW, 1.0, "a").encode())
    path.rename(tmp_path / "moved")
    file.append(record_line(NOW, 2.0, "a").encode())
    file.close()
    assert list(read_log(tmp_path / "moved").durations) == [1]
    assert list(read_log(path).durations) == [2]


def test_a_disk_that_takes_no_more_costs_sessions_and_nothing_else(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: a write ends in the middle, and the next one fails."""
    script = """
import resource, sys
from pathlib import Path
from evenly.live.log import Log
from evenly.live.recorder import Recorder
resource.setrlimit(resource.RLIMIT_FSIZE, (150, 150))
recorder = Recorder(Path(sys.argv[1]), Log(sys.stderr), clock=lambda: 1767225600.0)
for count in (1, 5, 1):
    for _ in range(count):
        recorder.ended("10.0.0.1:80", 1.0)
    recorder._write()
recorder.close()
print(recorder.lost)
"""
    path = tmp_path / "log"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 5
    event = json.loads(done.stderr)
    assert (event["event"], event["sessions"], event["reason"]) == ("sessions not recorded", 5, "File too large")
    log = read_log(path)
    assert (len(log), log.skipped) == (2, 0)  # no half line is left


def test_a_disk_that_is_too_slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenly.live.recorder.MAX_PENDING", 3)
    monkeypatch.setattr("evenly.live.recorder._PERIOD_S", 60.0)
    stream = io.StringIO()
    recorder = Recorder(tmp_path / "log", Log(stream), clock=lambda: NOW)
    for _ in range(5):
        recorder.ended("a", 1.0)
    recorder.report()
    recorder.report()
    recorder.close()
    assert recorder.lost == 2
    assert [json.loads(line)["reason"] for line in stream.getvalue().splitlines()] == ["the disk is too slow"]
    assert len(read_log(tmp_path / "log")) == 3


def test_only_our_own_files_are_written_to(tmp_path: Path) -> None:
    foreign = tmp_path / "notes.txt"
    foreign.write_text("important\n")
    with pytest.raises(InputError, match="it exists and is no record of sessions"):
        check_record(foreign)
    simulated = tmp_path / "simulated"
    simulated.write_text(record_header(clock="none"))
    with pytest.raises(InputError, match="is no record of sessions"):
        check_record(simulated)
    with pytest.raises(InputError, match="it is a directory"):
        check_record(tmp_path)
    with pytest.raises(InputError, match="there is no directory"):
        check_record(tmp_path / "none" / "log")
    assert foreign.read_text() == "important\n"
    check_record(tmp_path / "new")
    (tmp_path / "empty").touch()
    check_record(tmp_path / "empty")
    assert not (tmp_path / "new").exists()


def test_a_session_is_recorded_once_at_the_pool_that_served_it() -> None:
    seen: list[tuple[str, float]] = []
    now = 100.0
    balancer = Balancer(
        JoinShortestQueue(),
        name="jsq",
        choose=random.Random(1).choice,
        clock=lambda: now,
        slow_start=0.0,
        report=lambda event: None,
        record=lambda pool, seconds: seen.append((str(pool.address), seconds)),
    )
    addresses = [Address("127.0.0.1", port) for port in (9001, 9002)]
    for address in addresses:
        balancer.add(address, address)
    session, released, moved = (balancer.open() for _ in range(3))
    assert session is not None and released is not None and moved is not None
    assert session.pool is not None and moved.pool is not None
    name = str(session.pool.address)
    other = next(address for address in addresses if address != moved.pool.address)
    now = 104.0
    moved.served_by(other)
    released.release()
    now = 107.0
    for each in (session, session, released, moved):
        each.close()
    assert seen == [(name, 7.0), (str(other), 7.0)]


def test_what_ended_a_while_ago(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "log", Log(None), clock=lambda: NOW)
    recorder.ended("a", 5.0, ago=2.0)
    recorder.close()
    assert read_log(tmp_path / "log").origin == NOW - 7
