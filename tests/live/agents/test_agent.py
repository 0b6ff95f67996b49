"""The agent against a real dispatcher: counts, session ids, capacity, drain, and the life of its connection."""

from __future__ import annotations

import asyncio
import random
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from operator import eq
from pathlib import Path

import pytest

from evenly.errors import InputError
from evenly.live.agents import Agent, PoolFullError, link
from evenly.live.agents.agent import Session
from evenly.live.agents.link import MAX_OUTBOX
from evenly.live.session_id import read, sign
from evenly.live.signing import new_key
from evenly.live.store.base import PoolState
from tests.live.agents.dispatcher import CALM_S, SmallDispatcher
from tests.live.agents.support import asynchronous, dispatcher_process, new_agent, until, until_async
from tests.live.certificates import Authority
from tests.live.processes import PATIENCE, ask, free_port


async def sessions(dispatcher: SmallDispatcher, name: str = "game-1") -> int:
    pool = await dispatcher.pool(name)
    return -1 if pool is None else pool.sessions


async def expected(dispatcher: SmallDispatcher, name: str = "game-1") -> int:
    """Return how many tickets of the pool are open."""
    pool = await dispatcher.pool(name)
    return -1 if pool is None else pool.expected


@asynchronous
async def test_a_session_is_counted_while_its_block_runs() -> None:
    async with SmallDispatcher() as dispatcher, new_agent(dispatcher.url, capacity=5) as agent:
        async with agent.session(None):
            assert agent.sessions == 1
            await until_async(lambda: sessions(dispatcher), lambda count: count == 1)
        assert agent.sessions == 0
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        (hello,) = dispatcher.hellos
        assert isinstance(hello.pop("incarnation"), int)
        assert hello == {
            "type": "hello", "version": 2, "pool": "game-1", "address": "ws://127.0.0.1:7000", "capacity": 5,
        }  # fmt: skip


@asynchronous
async def test_the_count_is_exact_after_a_thousand_begins_ends_and_cancellations() -> None:
    rng = random.Random(1)
    async with SmallDispatcher() as dispatcher, new_agent(dispatcher.url) as agent:
        await until(lambda: agent.dispatcher)
        held: list[Session] = []
        tasks: list[asyncio.Task[None]] = []

        async def serve_client(seconds: float, fails: bool) -> None:
            async with agent.session(None):
                await asyncio.sleep(seconds)
                if fails:
                    raise ConnectionError

        for _ in range(1000):
            match rng.randrange(5):
                case 0:
                    held.append(agent.begin())
                case 1 if held:
                    session = held.pop(rng.randrange(len(held)))
                    session.end()
                    session.end()
                case 2:
                    tasks.append(asyncio.create_task(serve_client(rng.random() / 50, rng.random() < 0.3)))
                case 3 if tasks:
                    rng.choice(tasks).cancel()
                case _:
                    await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert agent.sessions == len(held) > 0
        await until_async(lambda: sessions(dispatcher), lambda count: count == len(held))
        for session in held:
            session.end()
        assert agent.sessions == 0


@asynchronous
async def test_the_ticket_of_a_session_id_arrives() -> None:
    async with SmallDispatcher() as dispatcher, new_agent(dispatcher.url) as agent:
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        name, session_id = await dispatcher.place()
        assert (name, await expected(dispatcher)) == ("game-1", 1)
        agent.begin(session_id)
        await until_async(lambda: expected(dispatcher), lambda count: count == 0)
        assert await sessions(dispatcher) == 1


@asynchronous
async def test_session_ids_bring_the_threshold() -> None:
    """No heartbeat is due: it comes with the clients, also with those that a full pool turns away."""
    async with SmallDispatcher(heartbeat=600) as dispatcher, new_agent(dispatcher.url) as agent:
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        for threshold, take in ((5, agent.begin), (9, agent.begin), (2, agent.begin), (7, agent.refuse)):
            ticket = (await dispatcher.store.place(count=1, exclude=frozenset(), key=None))[0].ticket
            session_id = sign(dispatcher.store.key, "game-1", ticket, threshold)
            take(session_id)
            assert agent.threshold == threshold


@asynchronous
async def test_forged_foreign_and_replayed_ids_count_but_take_no_place_away() -> None:
    async with SmallDispatcher() as dispatcher, new_agent(dispatcher.url) as agent:
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        _, first = await dispatcher.place()
        _, second = await dispatcher.place()
        named = read(second)
        assert named is not None
        ticket, key = named.ticket, dispatcher.store.key
        bad = [
            sign(new_key(), "game-1", ticket, 3),
            sign(key, "game-2", ticket, 3),
            second[:-1] + ("A" if second[-1] != "A" else "B"),
            "", ".", "game-1.", "x" * 10_000, "game-1." + "é" * 36, "game-1." + "\ud800" * 36, "\0", first + "=",
        ]  # fmt: skip
        for session_id in [first, first, first, *bad]:
            agent.begin(session_id)
        assert agent.sessions == 3 + len(bad)
        await until_async(lambda: sessions(dispatcher), lambda count: count == agent.sessions)
        assert await expected(dispatcher) == 1  # the second client is still on its way
        with pytest.raises(InputError, match="must be text"):
            agent.begin(b"game-1")  # type: ignore[arg-type]


@asynchronous
async def test_ids_of_the_key_before_are_good_and_those_of_older_keys_are_not() -> None:
    async with SmallDispatcher() as dispatcher, new_agent(dispatcher.url) as agent:
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        ids = []
        for _ in range(3):
            ids.append((await dispatcher.place())[1])
            await dispatcher.rotate(new_key())
            wanted = len(dispatcher.frames) + 3
            await until(lambda: len(dispatcher.frames) >= wanted)  # noqa: B023
        for session_id in ids:
            agent.begin(session_id)
        await until_async(lambda: sessions(dispatcher), lambda count: count == 3)
        assert await expected(dispatcher) == 2  # after three changes, only the last id is of the key before


@asynchronous
async def test_each_welcome_is_answered_with_a_heartbeat() -> None:
    """So a dispatcher that has lost its store knows at once of the clients that came with a ticket."""
    async with SmallDispatcher(heartbeat=600) as dispatcher, new_agent(dispatcher.url) as agent:
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        agent.begin((await dispatcher.place())[1])
        assert await sessions(dispatcher) == 0
        await dispatcher.rotate(new_key())
        await until_async(lambda: sessions(dispatcher), lambda count: count == 1)


@asynchronous
async def test_a_full_pool_refuses_and_gives_the_place_back() -> None:
    async with SmallDispatcher() as dispatcher, new_agent(dispatcher.url, capacity=1) as agent:
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        _, session_id = await dispatcher.place()
        first = agent.begin()  # a client without an id was quicker
        with pytest.raises(PoolFullError, match="game-1 has 1 sessions"):
            agent.begin(session_id)
        await until_async(lambda: expected(dispatcher), lambda count: count == 0)
        assert "refusal" in [each["kind"] for each in dispatcher.frames]
        with pytest.raises(PoolFullError):
            async with agent.session(None):
                raise AssertionError
        assert (agent.sessions, agent.full) == (1, True)
        first.end()
        async with agent.session(None):
            assert agent.full


@asynchronous
async def test_a_draining_pool_gets_no_picks_until_it_undrains() -> None:
    async with SmallDispatcher(heartbeat=0.25) as dispatcher, new_agent(dispatcher.url) as agent:
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        agent.drain()

        async def state() -> PoolState | None:
            pool = await dispatcher.pool("game-1")
            return None if pool is None else pool.state

        await until_async(state, lambda seen: seen is PoolState.LEAVING)
        before = len(dispatcher.frames)
        agent.begin().end()
        await until(lambda: len(dispatcher.frames), lambda seen: seen > before + 5)  # it stays so, over heartbeats
        assert {each["kind"] for each in dispatcher.frames[before:]} == {"leave"}
        assert len(dispatcher.hellos) == 1  # pongs prove that the dispatcher is there
        agent.undrain()
        await until_async(state, lambda seen: seen is PoolState.SERVING)


@asynchronous
async def test_an_agent_leaves_when_it_closes_and_can_start_again() -> None:
    async with SmallDispatcher() as dispatcher:
        agent = new_agent(dispatcher.url)
        for _ in range(2):
            async with agent:
                session = agent.begin()
                await until_async(lambda: sessions(dispatcher), lambda count: count == 1)
                session.end()
            await until(lambda: dispatcher.frames[-1]["kind"] == "leave")
            assert agent.dispatcher is None


@asynchronous
async def test_without_any_dispatcher_sessions_work() -> None:
    events: list[str] = []

    def report(event: str, facts: Mapping[str, object]) -> None:
        events.append(f"{event}: {facts['reason']}")
        raise RuntimeError("of the callback")

    async with new_agent(*(f"http://127.0.0.1:{free_port()}" for _ in range(3)), report=report) as agent:
        for _ in range(1000):
            agent.begin(sign(new_key(), "game-1", 1, 0)).end()
        async with agent.session(None):
            await until(lambda: len(events), lambda count: count == 3)
        await asyncio.sleep(0.5)  # more attempts, but no more words
        assert agent.sessions == 0
    assert len(events) == 3
    assert all(event.startswith("dispatcher lost") for event in events)


def test_a_killed_dispatcher_is_replaced_and_the_state_is_sent_again() -> None:
    async def run() -> None:
        with dispatcher_process() as (one, first), dispatcher_process() as (other, second):
            ports = {first: one, second: other}
            async with new_agent(*(f"http://127.0.0.1:{port}" for port in ports)) as agent:
                for _ in range(3):
                    agent.begin()
                url = str(await until(lambda: agent.dispatcher))
                lost = next(port for port in ports if f":{port}/" in url)
                ports[lost].kill()
                left = next(port for port in ports if port != lost)
                agent.begin()
                await until(lambda: agent.dispatcher, lambda now: now is not None and f":{left}/" in now)
                await until_async(
                    lambda: asyncio.to_thread(ask, left, "/state"), lambda seen: seen[1] == '{"game-1": 4}'
                )

    asyncio.run(run())


@pytest.mark.full
def test_a_dispatcher_that_hangs_is_given_up() -> None:
    async def run() -> None:
        with dispatcher_process() as (one, first), dispatcher_process() as (other, second):
            ports = {first: one, second: other}
            async with new_agent(*(f"http://127.0.0.1:{port}" for port in ports)) as agent:
                for stopped in range(2):  # the second time, both hang
                    url = str(await until(lambda: agent.dispatcher))
                    hung = next(port for port in ports if f":{port}/" in url)
                    ports[hung].send(signal.SIGSTOP)
                    agent.begin()
                    await until(lambda: agent.dispatcher != url)  # noqa: B023
                    assert agent.sessions == stopped + 1
                for process in ports.values():
                    process.send(signal.SIGCONT)
                await until(lambda: agent.dispatcher)

    asyncio.run(run())


@asynchronous
async def test_a_server_that_accepts_and_says_nothing_is_given_up() -> None:
    tried = 0

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tried
        tried += 1
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(ignore, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with silent, SmallDispatcher() as dispatcher:
        while not tried:  # the order is random
            async with new_agent(f"http://127.0.0.1:{port}", dispatcher.url) as agent:
                await until(lambda: agent.dispatcher)


@pytest.mark.parametrize(
    "nonsense",
    [
        "{",
        b"bytes",
        '{"threshold": -1, "version": 1, "oldest_ticket": 1}',
        '{"type": "welcome", "heartbeat": 0, "key": "%s"}' % ("ab" * 32),
        '{"type": "welcome", "heartbeat": 1, "key": "abab"}',
        "x" * 10_000,
    ],
)
@asynchronous
async def test_a_dispatcher_that_talks_nonsense_is_given_up(nonsense: str | bytes) -> None:
    reasons: list[str] = []

    def report(event: str, facts: Mapping[str, object]) -> None:
        reasons.append(str(facts.get("reason")))

    async with SmallDispatcher() as dispatcher, new_agent(dispatcher.url, report=report) as agent:
        first = await until(lambda: dispatcher.agents.get("game-1"))
        assert first is not None
        await first.send('{"type": "of a later version"}')
        await first.send(nonsense)
        await until(lambda: dispatcher.agents.get("game-1"), lambda now: now not in (None, first))
        agent.begin()
        await until_async(lambda: sessions(dispatcher), lambda count: count == 1)
    assert len(reasons) >= 2
    assert not any("abab" in reason for reason in reasons)


@asynchronous
async def test_an_agent_that_is_refused_waits_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two agents of one pool, each of which replaces the other, must not do so in a quick turn."""
    monkeypatch.setattr(link, "_REFUSED_DELAY_S", 100 * PATIENCE)
    reasons: list[object] = []
    report = lambda event, facts: reasons.append(facts.get("reason"))  # noqa: E731
    async with (
        SmallDispatcher(heartbeat=CALM_S) as dispatcher,
        new_agent(dispatcher.url, report=report),
        new_agent(dispatcher.url, pool="game-2"),
    ):
        refused = await until(lambda: dispatcher.agents.get("game-1"))
        assert refused is not None
        await refused.close(1008, "another agent of this pool has connected")

        def hellos(pool: str) -> int:
            return [hello["pool"] for hello in dispatcher.hellos].count(pool)

        for count in range(1, 5):  # with the usual delay, the other one would be back before the last of these
            await until(lambda: hellos("game-2"), partial(eq, count))
            await dispatcher.agents["game-2"].close(1001, "the dispatcher stops")
        assert hellos("game-1") == 1
    assert "the dispatcher says: another agent of this pool has connected" in reasons


@asynchronous
async def test_a_burst_drops_the_oldest_messages_and_the_last_state_arrives() -> None:
    async with SmallDispatcher(heartbeat=CALM_S) as dispatcher, new_agent(dispatcher.url) as agent:
        await until_async(lambda: sessions(dispatcher), lambda count: count == 0)
        for _ in range(3 * MAX_OUTBOX):
            agent.undrain()  # a message each
        agent.begin()
        agent.undrain()
        assert len(agent._link._outbox) == MAX_OUTBOX
        assert agent.dropped >= 2 * MAX_OUTBOX
        await until_async(lambda: sessions(dispatcher), lambda count: count == 1)
        assert len(dispatcher.hellos) == 1  # the connection is still the first


def test_a_dispatcher_that_does_not_read_is_given_up() -> None:
    """It answers pings of the kernel only; the agent's buffer does not grow."""

    async def run() -> None:
        with dispatcher_process() as (process, port):
            async with new_agent(f"http://127.0.0.1:{port}") as agent:
                await until(lambda: agent.dispatcher)
                process.send(signal.SIGSTOP)
                url = agent.dispatcher
                while agent.dispatcher == url:
                    for _ in range(2000):
                        agent.undrain()  # a message each
                    await asyncio.sleep(0.01)
                assert agent.dropped > 0
                assert len(agent._link._outbox) == 0
                process.send(signal.SIGCONT)

    asyncio.run(run())


def test_an_agent_can_close_although_its_dispatcher_hangs_and_the_socket_is_full() -> None:
    async def run() -> None:
        with dispatcher_process() as (process, port):
            async with new_agent(f"http://127.0.0.1:{port}") as agent:
                url = await until(lambda: agent.dispatcher)
                process.send(signal.SIGSTOP)
                while agent.dispatcher == url and len(agent._link._outbox) < 900:  # the socket takes no more
                    for _ in range(500):
                        agent.undrain()
                    await asyncio.sleep(0)
            process.send(signal.SIGCONT)

    asyncio.run(run())


def test_an_agent_can_be_used_in_one_event_loop_after_another() -> None:
    agent: Agent | None = None

    async def run(close: bool) -> None:
        nonlocal agent
        async with SmallDispatcher(port) as dispatcher:
            agent = agent or new_agent(dispatcher.url)
            agent.start()
            agent.begin()
            await until_async(
                lambda: sessions(dispatcher), lambda count: agent is not None and count == agent.sessions
            )
            if close:
                await agent.close()

    port = free_port()
    asyncio.run(run(close=False))  # it is cancelled with the loop
    asyncio.run(run(close=True))
    assert agent is not None and agent.sessions == 2


@asynchronous
async def test_the_token_is_sent_and_a_wrong_one_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "a-token-of-agents-1234"
    file = tmp_path / "token"
    file.write_text(f"{token}\n")
    reasons: list[object] = []
    async with SmallDispatcher(token=token) as dispatcher:
        async with new_agent(dispatcher.url, token=token) as agent:
            await until(lambda: agent.dispatcher)
        async with new_agent(dispatcher.url, token_file=file) as agent:
            await until(lambda: agent.dispatcher)
        monkeypatch.setenv("EVENLY_AGENT_TOKEN", token)
        async with new_agent(dispatcher.url) as agent:
            await until(lambda: agent.dispatcher)
        report = lambda event, facts: reasons.append(facts["reason"])  # noqa: E731
        async with new_agent(dispatcher.url, token="x" * 20, report=report):
            await until(lambda: reasons)
    assert "401" in str(reasons[0])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "ours")


@asynchronous
async def test_tls_with_a_ca_file(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("dispatcher").files)
    reasons: list[object] = []
    async with SmallDispatcher(ssl=context) as dispatcher:
        async with new_agent(dispatcher.url, ca_file=authority.cert) as agent:
            await until(lambda: agent.dispatcher)
        report = lambda event, facts: reasons.append(facts["reason"])  # noqa: E731
        async with new_agent(dispatcher.url, report=report) as agent:
            await until(lambda: reasons)
            assert agent.dispatcher is None
    assert "certificate" in str(reasons[0])


def test_bad_settings_are_rejected() -> None:
    rows: list[tuple[dict[str, object], str]] = [
        ({"pool": "a b"}, "The name of a pool must be"),
        ({"address": "10.0.0.5:7000"}, "address of a pool must be a URL"),
        ({"address": "tcp://10.0.0.5:7000"}, "address of a pool must be a URL"),
        ({"address": "ws://10.0.0.5:7000/?a=b"}, "address of a pool must be a URL"),
        ({"address": None}, "address of a pool must be a URL"),
        ({"dispatchers": []}, "dispatchers must be a list"),
        ({"dispatchers": "http://127.0.0.1:1"}, "dispatchers must be a list"),
        ({"dispatchers": ["127.0.0.1:4100"]}, "A dispatcher must be the URL of its API"),
        ({"dispatchers": ["http://127.0.0.1:99999"]}, "A dispatcher must be the URL of its API"),
        ({"dispatchers": ["ftp://127.0.0.1"]}, "A dispatcher must be the URL of its API"),
        ({"dispatchers": ["http://[::1"]}, "A dispatcher must be the URL of its API"),
        ({"dispatchers": ["http://me:secret@127.0.0.1"]}, "without user and password"),
        ({"dispatchers": ["http://10.0.0.1:1"], "token": "t" * 20}, "must not travel unencrypted"),
        ({"token": "short"}, "The agent token from the argument token must be 16 to 4096"),
        ({"token": "t" * 20, "token_file": "f"}, "Give token or token_file, not both"),
        ({"token_file": "/does/not/exist"}, "Cannot read /does/not/exist"),
        ({"capacity": 0}, "capacity must be a whole number from 1"),
        ({"ca_file": "/does/not/exist"}, "ca_file is for dispatchers with https"),
        ({"dispatchers": ["https://127.0.0.1:1"], "ca_file": "/does/not/exist"}, "Cannot use the CA file"),
    ]
    for more, sentence in rows:
        settings: dict[str, object] = {
            "pool": "game-1", "address": "ws://127.0.0.1:7000", "dispatchers": ["http://127.0.0.1:4100"]
        }  # fmt: skip
        with pytest.raises(InputError) as caught:
            Agent(**{**settings, **more})  # type: ignore[arg-type]
        assert sentence in str(caught.value)
        assert "secret" not in str(caught.value)


def test_importing_agents_is_light() -> None:
    code = (
        "import sys; from evenly.live.agents import Agent, EvenlyMiddleware, PoolFullError; "
        "print([name for name in ('numpy', 'pydantic', 'fastapi', 'starlette', 'uvicorn') if name in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"
