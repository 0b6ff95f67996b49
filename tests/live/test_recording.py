"""`--record` of the real programs: gateway, picker, and a dispatcher whose agents tell it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from evenly.core.protocol.codec import read_object
from evenly.live.agents.ended import MAX_IN_FRAME, MAX_WAITING, EndedSessions
from evenly.live.dispatcher.hello import read_ended
from evenly.logs import read_log
from tests.live.agents.dispatcher import SmallDispatcher
from tests.live.agents.support import asynchronous, new_agent, until
from tests.live.clients import sessions
from tests.live.dispatcher.rig import Dispatcher
from tests.live.processes import eventually
from tests.live.rig import rig
from tests.live.test_gateway import gateway

HELD_S = 0.2


def recorded(path: Path) -> int:
    """Return the number of sessions in a file that may not be there yet, or be empty."""
    return len(read_log(path)) if path.exists() and path.read_bytes().count(b"\n") > 2 else 0  # two of the header


def test_a_gateway_records_its_sessions(tmp_path: Path) -> None:
    path = tmp_path / "sessions.csv"
    before = time.time()
    with gateway("--record", str(path), patient=True) as (started, pools):
        with sessions(started.port, 4):
            time.sleep(HELD_S)
        assert started.kill(signal.SIGTERM) == 0
        after = time.time()
        log = read_log(path)
        assert (log.format, len(log), log.skipped, log.still_open) == ("evenly", 4, 0, 0)
        assert set(log.server_names) == {pool.address for pool in pools}
        assert log.servers is not None
        assert sorted(log.servers) == [0, 0, 1, 1]
        assert min(log.durations) >= HELD_S - 0.01
        assert before - 0.01 <= log.origin
        assert log.origin + max(log.starts + log.durations) <= after + 0.01


@pytest.mark.full
def test_a_picker_that_stops_records_open_sessions_as_open(tmp_path: Path) -> None:
    path = tmp_path / "sessions.csv"
    with rig(2, "--record", str(path)) as live, sessions(live.port, 1):
        with sessions(live.port, 2):
            live.settled(3)
        live.settled(1)
        eventually(lambda: recorded(path), lambda count: count == 2)  # before it stops
        assert live.picker.kill(signal.SIGTERM) == 0
        log = read_log(path)
        assert (len(log), log.still_open) == (3, 1)


@asynchronous
async def test_a_dispatcher_records_what_agents_tell(tmp_path: Path) -> None:
    path = tmp_path / "sessions.csv"
    with Dispatcher("--record", str(path)) as dispatcher:
        async with new_agent(dispatcher.url, pool="game-1") as agent:
            await until(lambda: agent.dispatcher)
            kept = agent.begin()
            before = time.time()
            for _ in range(3):
                session = agent.begin()
                session.end()
                session.end()
            await until(lambda: recorded(path), lambda count: count == 3)
            kept.end()
        await until(lambda: recorded(path), lambda count: count == 4)  # closing tells what is left
        assert dispatcher.kill(signal.SIGTERM) == 0
    log = read_log(path)
    assert log.server_names == ("game-1",)
    assert abs(log.origin - before) < 60
    assert max(log.durations) > 0


@asynchronous
async def test_a_dispatcher_that_does_not_record_is_told_nothing() -> None:
    async with SmallDispatcher() as dispatcher, new_agent(dispatcher.url) as agent:
        await until(lambda: agent.dispatcher)
        agent.begin().end()
        assert list(agent._ended.frames()) == []


def test_many_sessions_take_several_frames_and_the_oldest_give_way() -> None:
    now = 0.0
    ended = EndedSessions(clock=lambda: now)
    ended.add(0.0)
    ended.wanted = True
    for number in range(MAX_WAITING + 3):
        now = float(number)
        ended.add(0.0)
    frames = [read_ended(read_object(frame)) for frame in ended.frames()]
    told = [each for some, _ in frames for each in some]
    assert [lost for _, lost in frames] == [3] + [0] * (len(frames) - 1)
    assert len(frames) == MAX_WAITING // MAX_IN_FRAME
    assert told[0] == (now - 3, 3.0)
    assert told[-1] == (0.0, now)
    assert list(ended.frames()) == []


def test_the_longest_frame_fits() -> None:
    now = 0.0
    ended = EndedSessions(clock=lambda: now)
    ended.wanted = True
    now = 999_999_999.123
    for _ in range(MAX_IN_FRAME):
        ended.add(0.0)
    now = 999_999_999.123 + 99_999.123
    assert max(map(len, ended.frames())) <= 8192
