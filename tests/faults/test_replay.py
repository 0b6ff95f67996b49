"""A schedule is one integer: the same seed repeats every event."""

import os
import subprocess
import sys

import pytest

from evenly.errors import InputError
from tests.faults.__main__ import main
from tests.faults.broken import BROKEN
from tests.faults.network import MODES, explain, run_schedule


@pytest.mark.parametrize("mode", MODES)
def test_the_same_seed_repeats_the_same_schedule(mode: str) -> None:
    first, second = (run_schedule(5, mode, tracing=True) for _ in range(2))
    assert first == second and len(first.trace) > 100
    assert run_schedule(6, mode, tracing=True).trace != first.trace


def test_writing_the_trace_changes_nothing() -> None:
    for seed in range(10):
        silent, told = (run_schedule(seed, "liveness", tracing=tracing) for tracing in (False, True))
        assert silent.trace == () and (silent.events, silent.faults) == (told.events, told.faults)


def test_the_schedule_is_the_same_in_another_process_whatever_the_hashes_are() -> None:
    command = [sys.executable, "-m", "tests.faults", "--seed", "12", "--mode", "safety"]
    outputs = [
        subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed}, check=True
        )
        for seed in ("1", "2")
    ]
    assert outputs[0].stdout == outputs[1].stdout
    assert outputs[0].stdout.endswith("everything held\n")


def test_a_failure_tells_how_to_replay_it(capsys: pytest.CaptureFixture[str]) -> None:
    broken = BROKEN["PicksNotCounted"]
    assert main(["--schedules", "1", "--first-seed", "4"], broken) == 1
    told = capsys.readouterr().out
    assert "Replay: python -m tests.faults --seed 4 --mode safety\n" in told and "1 failures" in told
    assert main(["--seed", "4", "--mode", "safety"], broken) == 1
    *events, end = capsys.readouterr().out.splitlines()
    failure = run_schedule(4, "safety", peers=broken)
    assert str(failure.failure) in told and end.endswith(str(failure.failure))
    assert all(line in events for line in explain(failure, peers=broken).splitlines()[:-2])


def test_many_schedules_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--schedules", "6", "--first-seed", "1"]) == 0
    alone = capsys.readouterr().out
    assert "6 schedules (3 safety, 3 liveness)" in alone and "0 failures" in alone and "  loss\n" in alone


@pytest.mark.full
def test_several_processes_count_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--schedules", "60", "--mode", "safety"]) == 0
    alone = capsys.readouterr().out
    assert main(["--schedules", "60", "--mode", "safety", "--jobs", "2"]) == 0
    assert capsys.readouterr().out == alone


def test_a_mode_is_safety_or_liveness() -> None:
    with pytest.raises(InputError, match=r"^mode must be safety or liveness, not 'best'\.$"):
        run_schedule(1, "best")
