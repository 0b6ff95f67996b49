"""Sticky sessions without processes: the rule of the balancer, the tokens, and the messages of Envoy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from evenly.core import LearningRule, Policy, UtilityThreshold, make_policy
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.session import Session
from evenly.live.envoy import ext_proc
from evenly.live.envoy.bootstrap import envoy_config
from evenly.live.envoy.pick_stream import PickService, PickStream
from evenly.live.envoy.reconcile import EnvoyCounts
from evenly.live.envoy.sticky import Return, Sticky
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.settings import read_settings
from evenly.live.signing import KEY_BYTES, new_key, read_key, signature
from evenly.live.sticky_rule import DEFAULT_MARGIN, MAX_MARGIN, StickyRule, parse_sticky
from evenly.live.wire.protobuf import field
from evenly.live.wire.streams import Stream
from evenly.policies import LIVE
from evenly.sim import Scenario, limits, simulate
from tests.live.sent_items import SentItems
from tests.live.test_pick_stream import response
from tests.sim.support import assert_mean

KEY = bytes(range(KEY_BYTES))
GIVEN = {"listen": "127.0.0.1:80", "pool": ["127.0.0.1:9001"]}
COOKIE, HEADER = parse_sticky("cookie"), parse_sticky("header:X-Pool")


def at(number: int) -> Address:
    return Address("127.0.0.1", 9001 + number)


class Scene:
    """Pools of these weights, and streams of one Envoy to a picker with sticky sessions."""

    def __init__(
        self,
        weights: Sequence[float] = (1, 1, 1),
        *,
        name: str = "threshold",
        threshold: int | None = 3,
        margin: int = 1,
        rule: StickyRule = COOKIE,
        slow_start: float = 0.0,
    ) -> None:
        learned = "threshold-utility" if name == "threshold" else name

        def fresh() -> Policy:
            return make_policy(learned, threshold=threshold if "threshold" in learned else None)

        self.now = 0.0
        self.balancer = Balancer(
            fresh(),
            name=name,
            choose=random.Random(1).choice,
            clock=lambda: self.now,
            slow_start=slow_start,
            report=lambda event: self.sticky.pools_changed(),
            fresh=fresh,
        )
        self.sticky = Sticky(rule, key=KEY, margin=margin, pools=lambda: self.balancer.pools)
        self.pools = [
            self.balancer.add(at(number), at(number), weight=weight, slowly=False)
            for number, weight in enumerate(weights)
        ]
        self.envoy = EnvoyCounts(Address("127.0.0.1", 9901))
        self.sent = SentItems()
        self.service = PickService(self.balancer, Latency(), self.sticky)

    def stream(self) -> PickStream:
        return PickStream(self.service, Stream(self.sent, b"\0\0\0\1", 2**16), self.envoy)

    def answer(self, stream: PickStream, message: bytes) -> bytes | int:
        stream.message(message)
        return self.sent.items[-1]

    def visit(self, *headers: tuple[str, str]) -> tuple[LivePool, bytes | int]:
        """Open a session that stays; return its pool and the answer to its response headers."""
        before = {pool: pool.sessions for pool in self.pools}
        stream = self.stream()
        self.answer(stream, request(*headers))
        [pool] = [pool for pool in self.pools if pool.sessions > before[pool]]
        return pool, self.answer(stream, field(3, b"headers of a response"))

    def returning(self, pool: LivePool) -> tuple[LivePool, bytes | int]:
        return self.visit(("cookie", f"a=b; evenly-pool={self.sticky.token(pool)}; c=d"))

    def fill(self, pool: LivePool, sessions: int) -> None:
        while pool.sessions < sessions:
            assert self.balancer.open(among=[pool.endpoint]) is not None

    def check_counts(self) -> None:
        """Check that the policy, its tokens and the ledger of the Envoy agree with the pools."""
        for pool in self.pools:
            if pool.member:
                assert self.balancer.policy.tasks(pool) == pool.sessions
        if self.balancer.token_holders is not None:
            green, yellow = self.balancer.token_holders
            for pool in self.pools:
                threshold = self.balancer.threshold_for(pool.weight)
                assert threshold is not None
                assert (pool in green) == (pool.member and pool.sessions < threshold)
                assert not (pool.member and pool.sessions < threshold) or pool in yellow


def request(*headers: tuple[str, str], raw: bool = True) -> bytes:
    values = (field(1, field(1, name) + field(3 if raw else 2, value)) for name, value in headers)
    return field(2, field(1, b"".join(values)))


# --- the rule --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [0, 5])
def test_a_client_returns_until_its_pool_is_above_threshold_and_margin(margin: int) -> None:
    scene = Scene(threshold=3, margin=margin)
    mine = scene.pools[1]
    while mine.sessions <= 3 + margin:
        assert scene.returning(mine) == (mine, ext_proc.GO_ON)
        scene.check_counts()
    other, answer = scene.returning(mine)
    assert other is not mine
    assert answer == scene.sticky.response(other, secure=False)
    assert mine.sessions == 3 + margin + 1
    scene.check_counts()
    assert scene.sticky.seen == {"new": 0, "kept": 4 + margin, "moved": 1, "ignored": 0}
    assert scene.balancer.picks["returned"] == 4 + margin
    assert (scene.envoy.sessions, scene.balancer.moved_total, scene.balancer.unpicked_total) == (5 + margin, 0, 0)


def test_each_weight_has_its_own_threshold() -> None:
    scene = Scene((1, 4), threshold=10, margin=0)
    limits = [scene.balancer.threshold_for(weight) or 0 for weight in (1, 4)]
    assert limits[1] > 2 * limits[0] > 0
    for pool, limit in zip(scene.pools, limits, strict=True):
        scene.fill(pool, limit)
        assert scene.returning(pool)[0] is pool
        assert scene.returning(pool)[0] is not pool


@pytest.mark.parametrize("name", [name for name in LIVE if "threshold" not in name])
def test_without_a_threshold_the_sessions_due_to_the_pool_count(name: str) -> None:
    scene = Scene(name=name, margin=1)
    for pool in scene.pools:
        scene.fill(pool, 2)
    mine = scene.pools[0]
    scene.fill(mine, 3)
    assert scene.returning(mine)[0] is mine  # 3 sessions, and 7 / 3 are due, plus the margin
    scene.fill(mine, 5)
    scene.returning(mine)
    assert scene.sticky.seen[Return.MOVED] == 1
    scene.check_counts()


@pytest.mark.parametrize("event", ["drain", "fail", "remove"])
def test_a_pool_that_does_not_serve_gets_no_client_back(event: str) -> None:
    scene = Scene()
    mine = scene.returning(scene.pools[2])[0]
    if event == "drain":
        scene.balancer.drain(mine.address)
    elif event == "fail":
        scene.balancer.set_failing(mine, "down")
    else:
        scene.balancer.remove(mine.address)
    other, answer = scene.returning(mine)
    assert other is not mine
    assert answer == scene.sticky.response(other, secure=False)
    scene.check_counts()
    if event == "drain":
        scene.balancer.undrain(mine.address)
        assert scene.returning(mine) == (mine, ext_proc.GO_ON)


def test_a_pool_at_its_slow_start_cap_gets_no_client_back() -> None:
    scene = Scene(slow_start=10.0)
    new = scene.balancer.add(at(7), at(7))
    scene.pools.append(new)
    assert scene.returning(new)[0] is new
    assert scene.returning(new)[0] is not new
    scene.now = 10.0
    scene.balancer.tick()
    assert scene.returning(new)[0] is new


def test_the_threshold_does_not_learn_from_a_return() -> None:
    scene = Scene(threshold=0, margin=9)
    assert isinstance(scene.balancer.policy, UtilityThreshold)
    scene.balancer.policy.dispatcher.rule = LearningRule("0.9")
    for _ in range(20):
        scene.returning(scene.pools[0])
    learned = scene.balancer.threshold
    assert learned is not None
    assert scene.pools[0].sessions > learned  # 10 of the 20 went back, and the others were placed by the policy
    assert scene.sticky.seen[Return.KEPT] >= 10
    scene.check_counts()


def test_counts_and_tokens_stay_right_over_a_long_history() -> None:
    scene = Scene((1, 1, 2, 4), threshold=4, margin=1)
    chance = random.Random(7)
    streams: list[PickStream] = []
    for _ in range(3000):
        if streams and chance.random() < 0.5:
            streams.pop(chance.randrange(len(streams))).ended()
        else:
            stream = scene.stream()
            shown = scene.sticky.token(chance.choice(scene.pools)) if chance.random() < 0.8 else "forged"
            scene.answer(stream, request(("cookie", f"evenly-pool={shown}")))
            streams.append(stream)
        scene.check_counts()
    assert sum(pool.sessions for pool in scene.pools) == scene.envoy.sessions == len(streams)
    assert min(scene.sticky.seen[kind] for kind in (Return.KEPT, Return.MOVED, Return.IGNORED)) > 0
    for stream in streams:
        stream.ended()
    assert [pool.sessions for pool in scene.pools] == [0, 0, 0, 0]
    scene.check_counts()


def test_balancer_and_simulator_keep_the_same_share_of_the_clients() -> None:
    """Sessions with exponential times; half of the clients return to any pool, as in the simulator."""
    pools, load, threshold = 10, 3.3, 3
    simulated = simulate(
        Scenario(pools=pools, load=load, threshold=threshold, sticky=0.5, sticky_margin=1, horizon=2e5, warmup=50)
    )
    scene = Scene([1] * pools, threshold=threshold, margin=1)
    chance = random.Random(3)
    opened: list[Session] = []
    shares = []
    for _ in range(40):
        returned = kept = 0
        for _ in range(600):
            if chance.random() * (pools * load + len(opened)) < len(opened):
                opened.pop(chance.randrange(len(opened))).close()
                continue
            session = None
            if chance.random() < 0.5:
                returned += 1
                session = scene.balancer.reopen(chance.choice(scene.pools), margin=1)
                kept += session is not None
            opened.append(session or not_none(scene.balancer.open()))
        shares.append(kept / returned)
    assert_mean(shares[1:], simulated.kept_share, "kept")


def not_none(session: Session | None) -> Session:
    assert session is not None
    return session


# --- what clients show -----------------------------------------------------------------------------------------


def test_a_header_instead_of_a_cookie() -> None:
    scene = Scene(rule=HEADER)
    pool, answer = scene.visit((":scheme", "https"))
    assert answer == ext_proc.response_with("x-pool", scene.sticky.token(pool), append=False)
    assert scene.visit(("x-pool", scene.sticky.token(pool))) == (pool, ext_proc.GO_ON)
    scene.visit(("cookie", f"x-pool={scene.sticky.token(pool)}"))
    assert scene.sticky.seen == {"new": 2, "kept": 1, "moved": 0, "ignored": 0}


def test_a_bad_cookie_is_ignored_and_counted() -> None:
    for value in [
        "evenly-pool=",
        "evenly-pool=AAAAAAAAAAAAAAAAAAAAAA",
        "evenly-pool={token}x",
        "evenly-pool=" + "x" * 50_000,
        "evenly-pool=\x00\xff",
        "evenly-pool={token}; evenly-pool={token}",
        "evenly-pool={token}; evenly-pool=other",
    ]:
        scene = Scene()
        token = scene.sticky.token(scene.pools[0])
        pool, answer = scene.visit(("cookie", value.replace("{token}", token)))
        assert answer == scene.sticky.response(pool, secure=False)
        assert scene.sticky.seen == {"new": 0, "kept": 0, "moved": 0, "ignored": 1}


def test_other_cookies_are_none_of_ours() -> None:
    for value in [
        "",
        "not-evenly-pool={token}",
        "EVENLY-POOL={token}",
        "a=evenly-pool={token}",
        "x" * 60_000,
        "xevenly-pool={token};" * 3000,
    ]:
        scene = Scene()
        scene.visit(("cookie", value.replace("{token}", scene.sticky.token(scene.pools[0]))))
        assert scene.sticky.seen[Return.NEW] == 1


def test_a_cookie_is_found_among_others() -> None:
    for around in ["{}", " {}", "a=b;{}", "a=b; {};c=d", "a=b;\t {} ; c", "xevenly-pool=1; {}"]:
        scene = Scene()
        mine = scene.pools[2]
        assert scene.visit(("cookie", around.format(f"evenly-pool={scene.sticky.token(mine)}")))[0] is mine
        assert scene.sticky.seen[Return.KEPT] == 1


def test_cookies_may_come_in_pieces_and_as_strings() -> None:
    scene = Scene()
    shown = request(("cookie", "a=b"), ("cookie", f"evenly-pool={scene.sticky.token(scene.pools[2])}"), raw=False)
    scene.answer(scene.stream(), shown)
    assert scene.pools[2].sessions == 1


def test_the_cookie_names_the_pool_that_served() -> None:
    scene = Scene()
    stream = scene.stream()
    scene.answer(stream, request(("cookie", f"evenly-pool={scene.sticky.token(scene.pools[0])}")))
    answer = scene.answer(stream, response(scene.pools[1].endpoint))
    assert answer == scene.sticky.response(scene.pools[1], secure=False)
    assert scene.answer(stream, response(Address("192.0.2.9", 80))) == ext_proc.GO_ON  # none of our pools


# --- keys ------------------------------------------------------------------------------------------------------


def test_a_token_depends_on_key_pool_and_use() -> None:
    scene = Scene()
    one, two = scene.pools[:2]
    other = Sticky(COOKIE, key=new_key(), margin=0, pools=lambda: scene.balancer.pools)
    assert len({scene.sticky.token(one), scene.sticky.token(two), other.token(one)}) == 3
    assert scene.sticky.pool(other.token(one)) is None
    message = str(one.address).encode()
    assert signature(KEY, message, size=16) != signature(KEY, message, size=16, use=b"sticky")


def test_a_key_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("0123456789abcdef0123456789abcdef\n")
    assert len(read_key(path)) == KEY_BYTES
    assert read_key(path) == read_key(path)
    for bad in ("", "short", "x" * 4097, "with a space " * 5, "ü" * 40):
        path.write_text(bad)
        with pytest.raises(InputError, match="must be 32 to 4096 printable ASCII characters"):
            read_key(path)


def test_a_gateway_keeps_its_key(tmp_path: Path) -> None:
    key = GatewayFolder(tmp_path).kept_key()
    assert len(key) == KEY_BYTES
    assert GatewayFolder(tmp_path).kept_key() == key
    (tmp_path / "sticky.key").write_bytes(b"half")
    assert len(GatewayFolder(tmp_path).kept_key()) == KEY_BYTES


# --- settings --------------------------------------------------------------------------------------------------


def test_what_can_be_sticky() -> None:
    rows: list[tuple[str, tuple[str, str]]] = [
        ("cookie", ("cookie", "evenly-pool")),
        ("cookie:My_Pool-1", ("cookie", "My_Pool-1")),
        ("header:X-Pool", ("header", "x-pool")),
    ]
    for text, rule in rows:
        settings = read_settings({**GIVEN, "sticky": text}, None)
        assert settings.sticky == rule
        assert settings.margin == DEFAULT_MARGIN
        assert read_settings(settings.model_dump(mode="json", exclude_none=True), None) == settings


def test_what_cannot_be_sticky() -> None:
    no_rule = "sticky must be cookie, cookie:NAME or header:NAME"
    rows: list[tuple[dict[str, object], str]] = [
        ({"sticky": ""}, no_rule),
        ({"sticky": "cookie:"}, no_rule),
        ({"sticky": "header"}, no_rule),
        ({"sticky": "cookie:a b"}, no_rule),
        ({"sticky": "header:é"}, no_rule),
        ({"sticky": 5}, no_rule),
        ({"sticky": "cookie:" + "x" * 65}, no_rule),
        ({"sticky": "header:Cookie"}, "which has a meaning already"),
        ({"sticky": "header:x-envoy-retry-on"}, "which has a meaning already"),
        (
            {"sticky": "cookie", "sticky_margin": -1},
            f"sticky-margin must be a whole number from 0 to {MAX_MARGIN}",
        ),
        ({"sticky_margin": 1}, "sticky-margin needs sticky"),
        ({"sticky_key_file": "x"}, "sticky-key-file needs sticky"),
    ]
    for given, reason in rows:
        with pytest.raises(InputError, match=reason):
            read_settings({**GIVEN, **given}, None)


def test_the_picker_sees_the_header_it_needs() -> None:
    rows: list[tuple[StickyRule | None, list[str]]] = [
        (None, []),
        (COOKIE, [":scheme", "cookie"]),
        (HEADER, [":scheme", "x-pool"]),
    ]
    for rule, seen in rows:
        config = envoy_config(
            listen=at(0), picker=at(1), pools=None, admin=Address("127.0.0.1", 99), health_path=None, sticky=rule
        )
        [listener] = config["static_resources"]["listeners"]
        filters = listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
        allowed = filters[0]["typed_config"]["extension_config"]["typed_config"]["forward_rules"][
            "allowed_headers"
        ]
        assert allowed["patterns"] == [{"exact": name} for name in [":method", *seen]]


def test_the_margin_of_the_simulator_is_that_of_the_gateway() -> None:
    assert DEFAULT_MARGIN == limits.DEFAULT_MARGIN
