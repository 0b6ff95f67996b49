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
from evenly.sim.estimate import count_text, duration_text, expected_events, log_estimate, speed_text
from evenly.sim.replication import Plan


@pytest.mark.parametrize(
    "options",
    [
        {"load": 2.5, "initial_tasks": 8, "horizon": 2.0},
        {"load": 2.5, "service_rate": 3.0, "horizon": 5.0},
        {"schedule": "0:2,5:0,10:6", "horizon": 15.0},
        {"schedule": "0:4~3/20", "horizon": 10.0},
        {"load": 9.0, "capacity": 3, "policy": "pull"},
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
        (7200, "2.0 hours"),
        (27 * 3600, "27 hours"),
        (1e15, "31,688,088 years"),
    ],
)
def test_a_duration_is_in_the_unit_that_suits_it(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@pytest.mark.parametrize(
    ("events_per_second", "text"),
    [
        (4_100, "0.0041 million events/s"),
        (9_400_000, "9.4 million events/s"),
        (110_000_000, "110 million events/s"),
    ],
)
def test_a_speed_is_a_plain_number(events_per_second: float, text: str) -> None:
    assert speed_text(events_per_second) == text


@pytest.mark.parametrize(("count", "text"), [(3, "3"), (1234, "1,200"), (1.0e10, "10,000,000,000"), (99.7, "100")])
def test_a_number_of_events_has_no_powers_of_ten(count: float, text: str) -> None:
    assert count_text(count) == text


@pytest.mark.long
@pytest.mark.full
@pytest.mark.parametrize(
    "arguments",
    [
        "compare --pools 500 --load 10.5 --horizon 1e9 --json",
        "simulate --policy evenly.core:JoinShortestQueue --pools 500 --load 10.5 --horizon 1e9 --json",
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
    assert re.fullmatch(r"About .+ events: roughly .+ at .+ million events/s\. Ctrl-C stops the run\.\n", line)
    assert (process.returncode, out, rest) == (130, "", "Stopped.\n")


def logged_estimate(
    speeds: dict[str | type, float], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> str:
    """Return what is logged for four replications of each policy on four threads, at these speeds of one."""
    monkeypatch.setattr(estimate, "events_per_second", lambda scenario, *_: speeds[scenario.policy])
    plan = Plan(replications=4, seed=1, batches=0, parts=1, mean_holding_times=False, points=0, trajectories=0)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        log_estimate(
            [
                (Scenario(policy=policy, pools=500, load=10.0, horizon=60.0, initial_tasks=10), plan)
                for policy in speeds
            ],
            4,
        )
    [record] = caplog.records
    return record.getMessage()


def test_each_policy_counts_at_its_own_speed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert "roughly 10 minutes at 0.004 m" in logged_estimate({"jsq": 1000.0}, monkeypatch, caplog)
    assert "roughly 20 minutes at 0.004 m" in logged_estimate({"jsq": 1e3, "random": 1e3}, monkeypatch, caplog)
    assert "roughly 10 minutes at 0.008 m" in logged_estimate({"jsq": 1e3, "random": 1e9}, monkeypatch, caplog)


def test_replications_of_a_policy_in_python_take_turns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert "roughly 40 minutes at 0.001 m" in logged_estimate({JoinShortestQueue: 1000.0}, monkeypatch, caplog)


def test_a_run_in_python_is_silent_unless_logging_is_on(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    simulate(Scenario(pools=5, load=2.0, horizon=5.0))
    assert capfd.readouterr() == ("", "")
    assert not logging.getLogger("evenly.sim").isEnabledFor(logging.INFO)
    assert caplog.records == []
