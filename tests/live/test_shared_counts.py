"""Several pickers with one view of the session counts: real processes, real gRPC streams, real stores."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import queue
import re
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis

from evenly.live.addresses import parse_address
from evenly.live.log import Log
from evenly.live.store.shared_counts import SharedCounts
from evenly.live.store_url import parse_store_url
from evenly.live.wire.protobuf import field
from tests.live.certificates import Authority
from tests.live.clients import Session
from tests.live.processes import PATIENCE, ask, eventually, free_port
from tests.live.rig import Envoy, Gateway, Picker, PoolProcess
from tests.live.stores import KINDS, StoreServer, running_store

if TYPE_CHECKING:
    import grpc

POOLS = [f"127.0.0.1:{port}" for port in range(9401, 9405)]
PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
REQUEST_HEADERS = field(2, b"some headers")
PASSWORD = "open-sesame-4711"
NUMBERS = itertools.count()  # every fleet has its own name: killed pickers stay in the store for a while


def same(message: bytes) -> bytes:
    return message


class Front:
    """A picker, and sessions opened at it as an Envoy opens them."""

    def __init__(self, picker: Picker, channel: grpc.Channel) -> None:
        self.picker = picker
        self.open: list[tuple[queue.Queue[bytes | None], Any, str]] = []
        self._channel = channel

    def begin(self) -> str:
        """Open a session and return its pool."""
        sent: queue.Queue[bytes | None] = queue.Queue()
        call = self._channel.stream_stream(PROCESS, same, same)(iter(sent.get, None), timeout=10 * PATIENCE)
        sent.put(REQUEST_HEADERS)
        answer = next(call)
        pool = next(pool for pool in POOLS if pool.encode() in answer)
        self.open.append((sent, call, pool))
        return pool

    def end(self, number: int = 0) -> str:
        """End a session and return its pool."""
        sent, call, pool = self.open.pop(number)
        sent.put(None)
        for _ in call:
            pass
        return pool

    def end_all(self) -> None:
        while self.open:
            self.end()

    def abandon(self) -> None:
        """Let go of the sessions of a picker that was killed."""
        for sent, call, _ in self.open:
            sent.put(None)
            call.cancel()
        self.open.clear()

    def sessions(self) -> dict[str, int]:
        return {pool["address"]: pool["sessions"] for pool in self.picker.state()["pools"]}

    def elsewhere(self) -> int:
        return sum(pool["elsewhere"] for pool in self.picker.state()["pools"])

    def held(self) -> Counter[str]:
        return Counter(pool for _, _, pool in self.open)


def arguments(store: StoreServer, *options: str, policy: str = "jsq") -> list[str]:
    pools = [word for pool in POOLS for word in ("--pool", pool)]
    alpha = ["--alpha", "0.6"] if policy == "threshold" else []
    return ["--policy", policy, *alpha, "--slow-start", "0", "--store", store.url, *pools, *options]


@contextmanager
def fronts(store: StoreServer, count: int = 2, *options: str, policy: str = "jsq") -> Iterator[list[Front]]:
    """Run pickers that share a store, and wait until all know each other."""
    import grpc

    fleet = () if "--fleet" in options else ("--fleet", f"test-{next(NUMBERS)}")
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            words = arguments(store, *fleet, *options, policy=policy)
            picker = stack.enter_context(Picker(*words, patient=True))
            channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{picker.port}"))
            found.append(Front(picker, channel))
        for front in found:
            front.picker.wait()
            stack.callback(front.abandon)
        for front in found:
            eventually(front.picker.state, lambda seen: seen["store"]["pickers"] == count - 1)
        yield found


def shown_pickers(picker: Picker) -> list[dict[str, Any]]:
    """Return the other pickers as the dashboard of this one lists them."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", picker.admin, timeout=PATIENCE)) as connection:
        connection.request("GET", "/dashboard/events", headers={"X-Evenly-Dashboard": "1"})
        answer = connection.getresponse()
        assert answer.readline() == b"event: hello\n"
        parts = json.loads(answer.readline().removeprefix(b"data: "))["parts"]
    return [part for part in parts if part["kind"] == "picker"]


def total(fronts: list[Front]) -> dict[str, int]:
    """Return the sessions that really are open at each pool."""
    held = sum((front.held() for front in fronts), Counter())
    return {pool: held[pool] for pool in POOLS}


def agree(fronts: list[Front]) -> dict[str, int]:
    """Wait until every picker counts the sessions of all, and return them."""
    truth = total(fronts)
    for front in fronts:
        eventually(front.sessions, lambda seen: seen == truth)
    return truth


@pytest.fixture(scope="module", params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    with running_store(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def valkey() -> Iterator[StoreServer]:
    with running_store("valkey") as found:
        yield found


def logged(picker: Picker, event: str) -> list[dict[str, Any]]:
    lines = [line for line in picker.output().splitlines() if '"event"' in line]
    return [found for line in lines if (found := json.loads(line))["event"] == event]


@pytest.mark.long
def test_two_pickers_balance_as_one(store: StoreServer) -> None:
    """JSQ that knows all sessions keeps any two pools within one session of each other after each pick.

    By induction: a pick goes to a pool with the fewest sessions. A picker knows all sessions when both agree.
    """
    with fronts(store) as (one, two):
        for number in range(6 * len(POOLS)):
            (one, two)[number % 2].begin()
            counts = agree([one, two])
            assert max(counts.values()) - min(counts.values()) <= 1
        assert one.elsewhere() == two.elsewhere() == 3 * len(POOLS)
        while one.open:  # only at one of them; the other fills the gaps
            pool = one.end()
            agree([one, two])
            assert two.begin() == pool
            assert len(set(agree([one, two]).values())) == 1
        two.end_all()
        assert agree([one, two]) == dict.fromkeys(POOLS, 0)
        assert one.elsewhere() == two.elsewhere() == 0


@pytest.mark.full
def test_bursts_at_three_pickers_are_seen_by_all(valkey: StoreServer) -> None:
    """Picks of different pickers at the same moment may meet at one pool. JSQ that knows all levels it again."""
    with fronts(valkey, 3) as found:
        for _ in range(5):
            for front in found:
                for _ in range(7):
                    front.begin()
        agree(found)
        for front in found:
            for _ in range(20):
                front.end(len(front.open) // 2)
        agree(found)
        spread = PATIENCE
        for _ in range(3 * len(POOLS)):
            found[0].begin()
            counts = agree(found).values()
            assert max(counts) - min(counts) <= max(spread, 1)
            spread = max(counts) - min(counts)
        for front in found:
            front.end_all()
        assert agree(found) == dict.fromkeys(POOLS, 0)


@pytest.mark.full
def test_a_threshold_follows_the_sessions_of_others(valkey: StoreServer) -> None:
    """The second picker places nothing, so only the shared counts can move its threshold."""
    with fronts(valkey, policy="threshold") as (one, two):
        for _ in range(10 * len(POOLS)):
            one.begin()
        agree([one, two])
        eventually(two.picker.state, lambda seen: seen["threshold"] >= 9)
        state = two.picker.state()
        assert state["messages"]["resync"] + state["messages"]["green"] > 0
        one.end_all()
        agree([one, two])


@pytest.mark.long
def test_a_picker_that_is_killed_is_forgotten(store: StoreServer) -> None:
    with fronts(store) as (one, two):
        for _ in range(5):
            one.begin()
        two.begin()
        agree([one, two])
        one.picker.kill()
        one.abandon()
        eventually(two.elsewhere, lambda seen: seen == 0)
        assert logged(two.picker, "picker forgotten")
        assert sum(two.sessions().values()) == 1
        one.picker.start()  # under a new id
        one.picker.wait()
        assert one.elsewhere() == 1  # known before the first pick


@pytest.mark.full
def test_a_picker_that_stops_takes_its_sessions_with_it(valkey: StoreServer) -> None:
    with fronts(valkey, 2, "--fleet", "short") as (one, two), valkey.client(text=True) as client:
        one.begin()
        agree([one, two])
        [shown] = eventually(lambda: shown_pickers(two.picker), lambda seen: len(seen) == 1 and seen[0]["age"])
        assert shown["name"] == f"{socket.gethostname()}:{one.picker.admin}"
        assert one.picker.kill(signal.SIGTERM) == 0
        one.abandon()
        eventually(two.elsewhere, lambda seen: seen == 0)
        assert two.picker.state()["store"]["pickers"] == 0
        assert client.zcard("evenly:{short}:registry") == 1


def test_pickers_go_on_without_the_store_and_agree_when_it_is_back(store: StoreServer) -> None:
    with fronts(store) as (one, two):
        for front in (one, two, one, two):
            front.begin()
        agree([one, two])
        store.kill()
        for front in (one, two):
            eventually(front.picker.state, lambda seen: not seen["store"]["available"])
            assert ask(front.picker.admin, "/readyz") == (200, '{"status":"ready","store":"unavailable"}')
            assert "evenly_store_available 0.0" in ask(front.picker.admin, "/metrics")[1]
            assert front.elsewhere() == 2  # as last known
            assert sum(front.sessions().values()) == 4
            front.begin()
        one.end()
        assert one.elsewhere() == two.elsewhere() == 2
        store.start()
        for front in (one, two):
            eventually(front.picker.state, lambda seen: seen["store"]["available"])
        agree([one, two])
        for front in (one, two):
            assert "evenly_store_available 1.0" in ask(front.picker.admin, "/metrics")[1]
            assert logged(front.picker, "store lost")
            assert len(logged(front.picker, "store reachable")) > 1
            assert not logged(front.picker, "fault")


def test_an_outage_of_the_store_is_no_silence_of_the_pickers(valkey: StoreServer) -> None:
    """After a minute in which nothing could be read, another picker has time to be heard again."""
    pool = parse_address(POOLS[0])

    async def read_after_an_outage() -> int:
        shared = SharedCounts(
            *(parse_store_url(valkey.url), f"test-{next(NUMBERS)}"),
            environment={},
            changed=lambda endpoint, count: None,
            refreshed=lambda: None,
            log=Log(None),
        )
        shared._peers.replace("a" * 32, 1, {pool: 3}, asyncio.get_running_loop().time() - 60.0)
        await shared._read_peers()
        await shared._client.aclose()
        return shared.elsewhere(pool)

    assert asyncio.run(read_after_an_outage()) == 3


@pytest.mark.full
def test_a_picker_starts_without_the_store(valkey: StoreServer) -> None:
    valkey.kill()
    try:
        with Picker(*arguments(valkey)) as picker:
            picker.wait()
            assert picker.state()["store"] == {"fleet": "default", "available": False, "pickers": 0}
            valkey.start()
            eventually(picker.state, lambda seen: seen["store"]["available"])
    finally:
        if valkey._process is None:
            valkey.start()


@pytest.mark.full
def test_lost_messages_are_made_up_for(store: StoreServer) -> None:
    with fronts(store, 2, "--fleet", "lossy") as (one, two), store.client(text=True) as client:
        for _ in range(5):
            client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            one.begin()
            two.begin()
            agree([one, two])
        client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        one.begin()
        agree([one, two])
        client.flushall()  # nothing is told, and no connection ends
        two.begin()
        agree([one, two])

        def hashes() -> int:
            names = client.zrange("evenly:{lossy}:registry", 0, -1)
            return sum(bool(client.exists(f"evenly:{{lossy}}:picker:{name}")) for name in names)

        eventually(hashes, lambda seen: seen == 2)


GARBAGE: list[object] = [
    "",
    "no JSON",
    "[" * 100_000,
    "[]",
    "{}",
    "\xff\x00",
    {"picker": "x", "sequence": 1, "counts": {}},
    {"picker": "a" * 32, "sequence": -1, "counts": {POOLS[0]: 5}},
    {"picker": "a" * 32, "sequence": 1, "counts": {POOLS[0]: 5}},
    {"picker": "a" * 32, "sequence": 10**30, "counts": {POOLS[0]: 5}},
    {"picker": "a" * 32, "sequence": 1, "counts": {POOLS[0]: -5}},
    {"picker": "a" * 32, "sequence": 1, "counts": {"nowhere": 5}},
    {"picker": "a" * 32, "sequence": 1, "counts": {POOLS[0]: 10**30}},
    {"picker": "a" * 32, "sequence": True, "counts": [], "gone": "yes"},
]


def plant(client: redis.Redis) -> None:
    """Put garbage where pickers look, and make them look."""
    registry, key = "evenly:{garbage}:registry", "evenly:{garbage}:picker:"
    now = client.time()[0]
    with client.pipeline() as batch:
        batch.zadd(registry, {letter * 32: now for letter in "bcde"} | {"no id": now, "f" * 32: 2**40})
        batch.set(key + "b" * 32, "text", ex=5)
        batch.hset(key + "c" * 32, mapping={"sequence": 1, POOLS[0]: 7})  # which never expires
        batch.hset(key + "d" * 32, mapping={"sequence": "x", POOLS[0]: 7})
        batch.pexpire(key + "d" * 32, 5000)
        batch.hset(key + "e" * 32, mapping={"sequence": 1, POOLS[0]: 7, "nowhere": 3})
        batch.pexpire(key + "e" * 32, 5000)
        for each in GARBAGE:
            batch.publish("evenly:{garbage}:pickers", each if isinstance(each, str) else json.dumps(each))
        batch.execute()


@pytest.mark.full
def test_garbage_is_ignored(store: StoreServer) -> None:
    with fronts(store, 2, "--fleet", "garbage") as (one, two), store.client(text=True) as client:
        one.begin()
        looks = int(client.info("commandstats")["cmdstat_hlen"]["calls"])

        def looked() -> int:
            plant(client)
            return int(client.info("commandstats")["cmdstat_hlen"]["calls"]) - looks

        eventually(looked, lambda seen: seen > 100)  # at most 5 hashes a look, by each of the two
        for front in (one, two):
            assert front.picker.state()["store"]["pickers"] == 1
        two.begin()
        agree([one, two])
        client.delete("evenly:{garbage}:registry")
        client.set("evenly:{garbage}:registry", "text")
        two.begin()
        agree([one, two])
        eventually(lambda: client.type("evenly:{garbage}:registry"), lambda kind: kind == "zset")
        for front in (one, two):
            eventually(front.picker.state, lambda seen: seen["store"]["available"])
            assert not logged(front.picker, "fault")


@pytest.mark.full
def test_a_flood_of_pickers_takes_little_memory(valkey: StoreServer) -> None:
    """The fakes claim far more counts than the limit; those that fit take at most 40 MB, the others nothing."""
    with fronts(valkey, 2, "--fleet", "flood") as (one, two), valkey.client(text=True) as client:
        before = one.picker.memory()
        fields = {f"10.0.{i // 200}.{i % 200}:80": 1 for i in range(9000)}
        fakes = [f"{number:032x}" for number in range(300)]
        with client.pipeline(transaction=False) as batch:
            for fake in fakes[:100]:
                batch.hset(f"evenly:{{flood}}:picker:{fake}", mapping={"sequence": 1, **fields})
            batch.execute()

        def ignored() -> list[dict[str, Any]]:
            """Renew the fakes, however long the pickers take to read them."""
            with client.pipeline(transaction=False) as batch:
                batch.zadd("evenly:{flood}:registry", dict.fromkeys(fakes, client.time()[0]))
                for fake in fakes[:100]:
                    batch.pexpire(f"evenly:{{flood}}:picker:{fake}", 5000)
                batch.execute()
            return logged(one.picker, "picker ignored")

        eventually(ignored, bool)
        one.begin()
        two.begin()
        agree([one, two])  # who was known before keeps its place
        assert one.picker.state()["store"]["pickers"] <= 63
        assert one.picker.memory() - before < 100_000_000
        eventually(lambda: one.picker.state()["store"]["pickers"], lambda seen: seen == 1)  # the fakes never renew


@pytest.mark.full
def test_fleets_do_not_mix(valkey: StoreServer) -> None:
    with fronts(valkey, 1, "--fleet", "red") as [red], fronts(valkey, 1, "--fleet", "blue") as [blue]:
        red.begin()
        with valkey.client(text=True) as client:
            eventually(lambda: client.keys("evenly:{red}:picker:*"), lambda keys: len(keys) == 1)
        assert blue.elsewhere() == 0
        assert sum(blue.sessions().values()) == 0


@pytest.mark.full
def test_two_envoys_with_a_picker_each_balance_as_one(valkey: StoreServer) -> None:
    """With real Envoys and real pools; the bound is that of two pickers."""
    with ExitStack() as stack:
        pools = [stack.enter_context(PoolProcess()) for _ in range(3)]
        words = [word for pool in pools for word in ("--pool", pool.address)]
        options = ("--policy", "jsq", "--slow-start", "0", "--store", valkey.url, "--fleet", "envoys", *words)
        pickers = [stack.enter_context(Picker(*options)) for _ in range(2)]
        envoys = [stack.enter_context(Envoy(picker, patient=True)) for picker in pickers]
        for process in pools:
            process.wait()
        for picker in pickers:
            picker.wait()
        for envoy in envoys:
            envoy.wait()
        for picker in pickers:
            eventually(picker.state, lambda seen: seen["store"]["pickers"] == 1)

        def views() -> list[list[int]]:
            """Return the counts of the pools, and of each picker."""
            counted = [[pool["sessions"] for pool in picker.state()["pools"]] for picker in pickers]
            return [[pool.sessions for pool in pools], *counted]

        def agreed(sessions: int) -> list[int]:
            wanted = eventually(views, lambda seen: seen == [seen[0]] * 3 and sum(seen[0]) == sessions)
            return wanted[0]

        opened: list[Session] = []
        for number in range(4 * len(pools)):
            opened.append(Session(envoys[number % 2].port).wait())
            stack.callback(opened[-1].abort)
            counts = agreed(number + 1)
            assert max(counts) - min(counts) <= 1
        while opened:
            opened.pop().close()
        agreed(0)


def test_a_gateway_hands_the_store_to_its_picker(valkey: StoreServer) -> None:
    options = ("--policy", "jsq", "--store", valkey.url, "--fleet", "gateway", "--pool", POOLS[0])
    with Gateway(*options) as gateway:
        gateway.wait()
        seen = eventually(gateway.state, lambda seen: seen["store"]["available"])
        assert seen["store"]["fleet"] == "gateway"


@pytest.mark.full
def test_a_user_with_few_rights_is_enough() -> None:
    """The reference lists these rights."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "live.md").read_text()
    listed = page.split("and the commands ")[1].split(" is enough")[0]
    commands = [f"+{name}" for name in re.findall(r"`(.+?)`", listed)]
    with running_store("valkey") as store, store.client(text=True) as client:
        client.execute_command(
            *("ACL", "SETUSER", "picker", "on", ">right", "~evenly:*", "&evenly:*", "-@all", *commands)
        )
        store.url = f"redis://picker:right@127.0.0.1:{store.port}"
        with fronts(store) as (one, two):
            one.begin()
            agree([one, two])
            one.end()
            agree([one, two])
            assert not logged(one.picker, "store lost")
            assert not logged(one.picker, "not announced")


@pytest.mark.full
def test_tls_needs_a_valid_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path, "ours")
    pair, ca = authority.sign("store"), str(authority.cert)
    files = ("--tls-cert-file", str(pair.cert), "--tls-key-file", str(pair.key), "--tls-ca-cert-file", ca)
    port = free_port()
    options = ("--tls-port", str(port), "--tls-auth-clients", "no", *files)
    with running_store("redis", *options) as store:
        store.url = f"rediss://127.0.0.1:{port}"
        monkeypatch.setenv("SSL_CERT_FILE", ca)
        with fronts(store) as (one, two):
            one.begin()
            agree([one, two])
        monkeypatch.delenv("SSL_CERT_FILE")
        with Picker(*arguments(store)) as picker:
            picker.wait()
            [lost] = eventually(lambda: logged(picker, "store lost"), bool)
            assert "CERTIFICATE_VERIFY_FAILED" in lost["reason"]


@pytest.mark.full
def test_the_password_is_used_and_never_written(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with running_store("valkey", password=PASSWORD) as store:
        store.url = f"redis://:{PASSWORD}@127.0.0.1:{store.port}"
        with Picker(*arguments(store), "--state-file", str(state)) as picker:
            picker.wait()
            eventually(picker.state, lambda seen: seen["store"]["available"])
            store.kill()
            eventually(picker.state, lambda seen: not seen["store"]["available"])
            assert PASSWORD not in picker.output()
            assert PASSWORD not in state.read_text()
            assert PASSWORD not in json.dumps(picker.state())
        store.start()
        store.url = f"redis://:wrong@127.0.0.1:{store.port}"
        with Picker(*arguments(store)) as picker:
            picker.wait()
            assert logged(picker, "store lost")
            assert "wrong@" not in picker.output()
