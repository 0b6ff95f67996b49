"""The estimate of a long run: its number of events, its words, and where it is printed."""

import logging
import os
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from evenly.core import JoinShortestQueue
from evenly.sim import Scenario, estimate, simulate
from evenly.sim.estimate import duration_text, expected_events, log_estimate
from evenly.sim.replication import Plan


@pytest.mark.parametrize(
    "options",
    [
        {"load": 2.5},
        {"load": 2.5, "horizon": 0.1},
        {"load": 2.5, "initial_tasks": 8, "horizon": 2.0},
        {"load": 2.5, "service_rate": 3.0, "horizon": 5.0},
        {"schedule": "0:2,5:0,10:6", "horizon": 15.0},
        {"schedule": "0:4~3/20", "horizon": 10.0},
        {"load": 9.0, "capacity": 3, "policy": "pull"},
        {"load": 0.5, "policy": "jiq"},
    ],
    ids=str,
)
def test_the_events_are_about_as_expected(options: dict[str, Any]) -> None:
    scenario = Scenario(**{"pools": 4000, "horizon": 20.0, **options})
    assert simulate(scenario).events == pytest.approx(expected_events(scenario), rel=0.1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (61, "1.0 minutes"),
        (119.9, "2.0 minutes"),
        (7000, "117 minutes"),
        (7200, "2.0 hours"),
        (27 * 3600, "27 hours"),
        (5 * 86400, "5.0 days"),
        (1e9, "32 years"),
        (1e15, "31,688,088 years"),
    ],
)
def test_a_duration_is_in_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        "compare --pools 500 --load 10.5 --horizon 1e9 --json",
        # The first policy is fast and the second sends a thousand messages per task: both are measured.
        "compare --policies random,power-of-d --sample-size 512 --delay 0.01 --pools 1000 --load 5 --horizon 2000 "
        "--json",
        "simulate --policy evenly.core:JoinShortestQueue --pools 500 --load 10.5 --horizon 1e6 --json",
    ],
)
def test_a_long_run_prints_an_estimate_and_can_be_stopped(arguments: str) -> None:
    command = ["env", "--default-signal=INT", sys.executable, "-m", "evenly", *arguments.split()]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    line = process.stderr.readline()
    while line.startswith("Compiling"):
        line = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate()
    pattern = (
        r"About [\d.e+]+ events: roughly [\d.,]+ (minutes|hours|days|years) at [\d.]+ million events/s\. .*\n"
    )
    assert re.fullmatch(pattern, line)
    assert (process.returncode, out, rest) == (130, "", "Stopped.\n")


def test_replications_of_a_policy_in_python_take_turns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(estimate, "events_per_second", lambda *_: 1000.0)
    plan = Plan(replications=4, seed=1, batches=0, parts=1, mean_holding_times=False, points=0, trajectories=0)
    for policy in ("jsq", JoinShortestQueue):
        scenario = Scenario(policy=policy, pools=500, load=10.0, horizon=60.0, initial_tasks=10)
        with caplog.at_level(logging.INFO):
            log_estimate([(scenario, plan)], 4)
    kernel, python = (record.getMessage() for record in caplog.records)
    assert "roughly 10 minutes at 0.004 million events/s" in kernel
    assert "roughly 40 minutes at 0.001 million events/s" in python


def test_a_run_in_python_is_silent_unless_logging_is_on(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    simulate(Scenario(pools=5, load=2.0, horizon=5.0))
    assert capfd.readouterr() == ("", "")
    assert not logging.getLogger("evenly.sim").isEnabledFor(logging.INFO)
    assert caplog.records == []
