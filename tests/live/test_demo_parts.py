"""The parts of the demo, each alone: visits, pools, traffic, averages, Envoy's config, verdict and screen."""

from __future__ import annotations

import asyncio
import io
import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean, stdev

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from evenly import Scenario, simulate
from evenly.cli.text import demo as show_demo
from evenly.core import JoinShortestQueue, LearningRule, Policy, ThresholdPolicy
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.admin.schema import MessagesView, PoolView, StateView, TokensView
from evenly.live.balancer.lifecycle import State
from evenly.live.demo.balance import Balance, balance, ideal
from evenly.live.demo.frame import Frame, Side
from evenly.live.demo.plan import POOLS, Plan
from evenly.live.demo.pools import embedded_pools
from evenly.live.demo.report import Outcome, Report, verdict
from evenly.live.demo.run import Run
from evenly.live.demo.stack import DemoStack, demo_config
from evenly.live.demo.traffic import Session, Traffic
from evenly.live.demo.window_report import WindowReport
from evenly.sim.tally import averages
from evenly.workload.demand import Phase
from evenly.workload.trace import Visit, draw_visits
from tests.live.processes import ask

PATIENCE = 60.0
FALSE_ALARM = 1e-7  # of each comparison with a law


# --- visits ------------------------------------------------------------------------------------------------------


def test_the_plan_measures_the_end_of_every_load_and_ends_on_time() -> None:
    plan = Plan(54, seed=3)
    assert [window.load for window in plan.windows] == [5.5, 10.5, 2.5]
    assert [window.begin for window in plan.windows] == pytest.approx([6, 24, 42])
    assert [window.end for window in plan.windows] == pytest.approx([18, 36, 54])
    assert [window.optimum for window in plan.windows] == [5, 10, 2]
    assert [plan.load_at(when) for when in (0, 17.9, 18.1, 53.9, 60)] == [5.5, 5.5, 10.5, 2.5, 2.5]
    assert max(visit.start + visit.stay for visit in plan.visits()) <= 54 + 1e-9
    with pytest.raises(InputError, match=r"seconds must be a number from 6 to 3600, not 5\."):
        Plan(5)
    with pytest.raises(InputError, match=r"seed must be a whole number from 0 to .*, not -1\."):
        Plan(seed=-1)


# --- pools and traffic -------------------------------------------------------------------------------------------


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_session_that_breaks_counts_as_failed_and_a_plain_request_is_none() -> None:
    ended: list[Session] = []

    async def scenario() -> Traffic:
        async with embedded_pools(1) as pools:
            traffic = Traffic(pools, seed=1, ended=ended.append)
            task = asyncio.create_task(traffic.run([Visit(0, 600.0)]))
            await until(lambda: traffic.open.total() == 1)
            status, _ = await asyncio.to_thread(ask, pools[0].port, "/")
            assert status == 426
        await task  # its pool is gone
        return traffic

    traffic = asyncio.run(scenario())
    assert [session.pool for session in ended] == [""]
    assert (traffic.started, traffic.failed) == (1, 1)


def test_the_pools_end_with_their_parent() -> None:
    command = [sys.executable, "-m", "evenly.live.demo.pools", "--count", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as pools:
        assert pools.stdin is not None
        assert pools.stdout is not None
        try:
            assert pools.stdout.readline()
            pools.stdin.close()
            assert pools.wait(PATIENCE) == 0
        finally:
            pools.kill()


def test_the_second_listener_of_envoy_bypasses_the_picker() -> None:
    evenly, rival, picker, admin, *pools = (Address("127.0.0.1", 10_000 + number) for number in range(9))
    static = demo_config(evenly, rival, picker, pools, admin)["static_resources"]
    ours, theirs = map(json.dumps, static["listeners"])
    assert '"picker"' in ours
    assert '"picker"' not in theirs
    assert '"pools"' not in theirs
    [cluster] = [json.dumps(each) for each in static["clusters"] if each["name"] == "least_request"]
    assert "override" not in cluster
    assert "LeastRequest" in cluster
    assert '"selection_method": "FULL_SCAN"' in cluster


# --- averages ----------------------------------------------------------------------------------------------------


def test_averages_of_a_case_worked_by_hand() -> None:
    sessions = [
        Session("a", 0, 4),
        Session("a", 1, 3),
        Session("b", 2, 6),
        Session("", 2, 3),  # failed
        Session("a", 3.5, 3.5),  # came and went
        Session("b", 5, 9),  # too late
    ]
    # From 1 to 2 (a, b) have (2, 0) sessions, then (2, 1), (1, 1), and (0, 1) from 4 to 5.
    found = balance(sessions, ["a", "b"], 1, 5)
    assert found.spread == pytest.approx((1 + 0.5 + 0 + 0.5) / 4)
    assert found.max_tasks == pytest.approx((2 + 2 + 1 + 1) / 4)
    assert found.mean_tasks == pytest.approx((1 + 1.5 + 1 + 0.5) / 4)
    assert found.pools_with_exactly == pytest.approx([0.25, 0.5, 0.25])
    with pytest.raises(ValueError, match="nothing to average"):
        balance(sessions, ["a", "b"], 2, 2)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "alpha", "policy"),
    [
        pytest.param("jsq", None, JoinShortestQueue(), marks=pytest.mark.full),
        ("threshold", "0.7", ThresholdPolicy(0, LearningRule("0.7"))),
    ],
    ids=["jsq", "threshold"],
)
def test_the_ideal_is_what_the_simulator_says(name: str, alpha: str | None, policy: Policy) -> None:
    """Compare means over stretches of 40 mean stays, which are nearly independent."""
    pools, load, batches, length, warmup = 10, 3.5, 20, 40.0, 20.0
    horizon = warmup + batches * length
    visits = draw_visits(pools=pools, schedule=[Phase(0, load)], horizon=horizon, mean_stay=1.0, seed=11)
    sessions = ideal(visits, pools, policy, seed=12)
    names = [str(pool) for pool in range(pools)]
    edges = [warmup + batch * length for batch in range(batches + 1)]
    ours = [balance(sessions, names, begin, end) for begin, end in pairwise(edges)]
    scenario = Scenario(policy=name, pools=pools, load=load, alpha=alpha, warmup=warmup, horizon=horizon)
    result = simulate(scenario, seed=13, batches=batches)
    theirs = [averages(sample, pools) for sample in result.windows]
    check_same_mean([each.spread for each in ours], [each.spread for each in theirs])
    check_same_mean([each.max_tasks for each in ours], [each.max_tasks for each in theirs])
    for tasks in (2, 3, 4, 5):
        check_same_mean(
            [share(each.pools_with_exactly, tasks) for each in ours],
            [share(each.pools_with_exactly, tasks) for each in theirs],
        )


def share(levels: Sequence[float] | NDArray[np.float64], tasks: int) -> float:
    return float(levels[tasks]) if tasks < len(levels) else 0.0


def check_same_mean(ours: list[float], theirs: list[float]) -> None:
    """Compare means by Welch's test, with the fewest degrees of freedom that it can have."""
    from scipy.stats import t

    error = math.sqrt(stdev(ours) ** 2 / len(ours) + stdev(theirs) ** 2 / len(theirs))
    limit = float(t.isf(FALSE_ALARM / 2, min(len(ours), len(theirs)) - 1)) * error
    assert abs(fmean(ours) - fmean(theirs)) < limit


# --- verdict -----------------------------------------------------------------------------------------------------


def state(*, threshold: int = 5, unpicked: int = 0, sessions: Sequence[int] = ()) -> StateView:
    """Return the state of a picker that placed a thousand sessions, of which these are open at its pools."""
    pools = [
        PoolView(
            address=str(pool_address(number)),
            sessions=open_,
            unpicked=0,
            elsewhere=0,
            state=State.SERVING,
            weight=1,
        )
        for number, open_ in enumerate(sessions)
    ]
    return StateView(
        policy="threshold",
        alpha=0.65,
        threshold=threshold,
        pools=pools,
        classes=[],
        sessions=sum(sessions),
        tokens=TokensView(green=3, yellow=12),
        messages=MessagesView(green=500, yellow=400, resync=60, other=0),
        picks={"green": 700, "yellow": 300},
        unpicked_sessions=unpicked,
        moved_sessions=0,
        envoys=[],
    )


def report(
    *,
    spread: float = 0.52,
    rival: float = 1.2,
    off: int = 0,
    failed: int = 0,
    unpicked: int = 0,
) -> Report:
    """Return a run with ideal spread 0.5, where the threshold is `off` the optimum half the time."""
    plan = Plan()
    phases = tuple(
        WindowReport(
            window,
            (window.optimum + off, window.optimum),
            {
                "evenly": Balance(spread, window.load + 1.0, [], window.load),
                "jsq": Balance(0.5, window.load + 0.9, [], window.load),
                "least_request": Balance(rival, window.load + 3.0, [], window.load),
            },
        )
        for window in plan.windows
    )
    return Report(plan, phases, Outcome(1000, failed), Outcome(1000, 0), state(unpicked=unpicked))


def test_the_verdict_of_a_good_run() -> None:
    assert verdict(report()) == [
        "The threshold followed the load: it ended the phases at 5, 10 and 2, where 5, 10 and 2 is best, "
        "and from 6 s after each change onwards it was at most one off 100 % of the time.",
        "Sessions were as even as the ideal: "
        "spread 0.52 against 0.50 for join-the-shortest-queue on the same visits.",
        "Envoy's own least_request with selection_method FULL_SCAN was 2.3 times as uneven, with spread 1.20: "
        "the fullest pool had 9.2 sessions on average, here 7.2. "
        "It compares all pools, but each of the 2 Envoys only knows its own sessions. "
        "With evenly, they share all counts.",
        "None of 2,000 sessions failed.",
    ]


def test_the_verdict_of_a_bad_run() -> None:
    words = verdict(report(spread=0.8, rival=0.6, off=2, failed=7, unpicked=30))
    assert words[0].startswith("The threshold did not follow the load")
    assert words[0].endswith("was more than one off 50 % of the time.")
    assert words[1].startswith("Sessions were 60 % less even than the ideal: spread 0.80 against 0.50")
    assert " was more even, with spread 0.60: " in words[2]
    assert words[3] == (
        "7 of 2,000 sessions failed: 7 here, 0 with least_request. "
        "For 30 of them Envoy did not wait for the picker's answer."
    )


def test_a_tenth_makes_the_difference() -> None:
    assert "as even as the ideal" in verdict(report(spread=0.549))[1]
    assert "10 % less even than the ideal" in verdict(report(spread=0.552))[1]
    assert "about as even" in verdict(report(spread=0.5, rival=0.54))[2]


def test_the_report_in_json_and_in_text() -> None:
    found = report(spread=0.6)
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["spread"] == pytest.approx({"evenly": 0.6, "jsq": 0.5, "least_request": 1.2})
    assert [phase["threshold"]["final"] for phase in facts["phases"]] == [5, 10, 2]
    assert (facts["envoys"], facts["selection_method"]) == (2, "FULL_SCAN")
    assert facts["messages"]["per_session"] == pytest.approx(0.9)
    assert facts["messages"]["resync_per_session"] == pytest.approx(0.06)
    assert facts["verdict"] == verdict(found)
    lines = show_demo.report_text(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[4].split() == ["10.5", "10", "10", "0.60", "0.50", "1.20", "11.5", "11.4", "13.5"]


# --- screen ------------------------------------------------------------------------------------------------------


def frame(highest: int = 7, *, picker: bool = True) -> Frame:
    """Return a moment at load 5.5."""
    ours = tuple(4 + number % 3 for number in range(POOLS))
    theirs = tuple(highest - number % 5 for number in range(POOLS))
    return Frame(
        time=15,
        seconds=54,
        load=5.5,
        evenly=Side(ours, 0.52, 1_234, 0),
        rival=Side(theirs, 1.21, 1_234, 2),
        picker=state() if picker else None,
        dashboard="http://127.0.0.1:65535/",
    )


def pool_address(number: int) -> Address:
    return Address("127.0.0.1", 10_000 + number)


def test_the_columns_and_the_threshold_are_of_one_moment() -> None:
    """The picker's answer has both. What the clients count now may be ahead of it."""
    pools = tuple(map(pool_address, range(POOLS)))
    run = Run(DemoStack((), (), pools, pools, pool_address(99)), Plan(), lambda _: None)
    assert run._frame().evenly.sessions == (0,) * POOLS
    sessions = tuple(4 + number % 3 for number in range(POOLS))
    run._picker = state(sessions=sessions)
    moment = run._frame()
    assert moment.evenly.sessions == sessions
    assert moment.rival.sessions == (0,) * POOLS


def drawn(moment: Frame, width: int, height: int, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width, height=height, color_system=None)
    console.print(show_demo.screen(moment, width, height))
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize(
    ("moment", "width", "height"),
    [(frame(), 80, 23), (frame(45), 161, 50), (frame(picker=False), 80, 24)],
    ids=["usual", "crowded", "picker away"],
)
def test_the_screen_stays_within_the_terminal(moment: Frame, width: int, height: int) -> None:
    lines = drawn(moment, width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) < height  # the last line would make the terminal scroll
    assert "39 s left" in lines[-1]


def test_the_screen_shows_every_session_the_threshold_and_the_numbers() -> None:
    moment = frame()
    lines = drawn(moment, 80, 24)
    side = POOLS + 7
    for place, sessions in enumerate((moment.evenly.sessions, moment.rival.sessions)):
        part = "".join(line[place * side : (place + 1) * side] for line in lines[1:-1])
        assert part.count("\u2588") + part.count("\u2589") == sum(sessions)
    [marked] = [line for line in lines if "\u25b8" in line]
    assert " 5\u25b8" in marked
    text = "\n".join(" ".join(line.split()) for line in lines)
    for expected in (
        "load now 5.5",
        "best threshold 5",
        "learned threshold 5",
        "pools below it 7",
        "pools at it 7",
        "pools above it 6",
        "FULL_SCAN",
        "evenly 0.52",
        "least_request 1.21",
        "sessions started 2,468",
        "failed 2",
        "http://127.0.0.1:65535/",
    ):
        assert expected in text


def test_the_screen_does_without_unicode() -> None:
    lines = drawn(frame(45), 80, 24, encoding="ascii")  # would fail on a letter that is not there
    assert sum(line.count("#") for line in lines) > 0


def test_a_screen_needs_a_terminal_that_is_large_enough() -> None:
    for width, height, terminal in [(80, 24, True), (79, 24, True), (80, 20, True), (80, 24, False)]:
        console = Console(file=io.StringIO(), width=width, height=height, force_terminal=terminal, _environ={})
        assert show_demo.screen_fits(console) is ((width, height, terminal) == (80, 24, True))


def test_a_moment_in_a_line() -> None:
    assert "threshold  5 (best  5)" in show_demo.line(frame())
    assert "threshold  ? (best  5)" in show_demo.line(frame(picker=False))
