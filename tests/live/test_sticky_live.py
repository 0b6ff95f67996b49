"""Sticky sessions and subset hints through a real Envoy, with curl and WebSocket clients.

Envoys that are patient take part, so that a busy machine does not make one place a session without the picker.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evenly.live.envoy.names import SUBSET, SUBSET_NAMESPACE
from evenly.live.sticky_rule import parse_sticky
from tests.live.clients import Session
from tests.live.dispatcher.rig import make_certificates
from tests.live.processes import PATIENCE, ask, eventually
from tests.live.rig import Envoy, Gateway, Picker, PoolProcess, Rig
from tests.live.test_gateway import children
from tests.needs import needs

MARGIN = 1
TRUSTED = "x-trusted-subset"  # a header that the Envoy of the tests turns into the hint
_SET_COOKIE = re.compile(r"^set-cookie: (evenly-pool=[\w-]{22})(.*)$", re.MULTILINE)
_FILTERS = "type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config"
_TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"


class Answer:
    """What curl got: status, the pool that answered, and the cookie that was set."""

    def __init__(self, text: str) -> None:
        head, _, self.pool = text.replace("\r\n", "\n").partition("\n\n")
        self.status = int(head.split()[1])
        found = _SET_COOKIE.search(head)
        self.cookie = None if found is None else found[1]
        self.attributes = None if found is None else found[2]


def curl(url: str, *options: str) -> Answer:
    command = [needs("curl"), "-sSi", "--max-time", f"{PATIENCE:g}", url, *options]
    return Answer(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class Front(Rig):
    """A picker with sticky sessions and two Envoys: the second has TLS, and a filter that sets the hint."""

    def get(self, *options: str, held: int = 0) -> Answer:
        """Send a request with curl. Wait until its session is no longer counted, and `held` are."""
        answer = curl(f"http://127.0.0.1:{self.port}/", *options)
        eventually(self.counts, lambda counts: sum(counts.values()) == held)
        return answer

    def get_among(self, subset: str | None, *options: str) -> Answer:
        """Send a request over TLS, with the hint."""
        hint = () if subset is None else ("-H", f"{TRUSTED}: {subset}")
        answer = curl(f"https://127.0.0.1:{self.envoys[1].port}/", "-k", *hint, *options)
        eventually(self.counts, lambda counts: sum(counts.values()) == 0)
        return answer

    def seen(self, result: str) -> int:
        name = re.escape(f'evenly_sticky_requests_total{{result="{result}"}}')
        found = re.search(rf"^{name} (\d+)", ask(self.picker.admin, "/metrics")[1], re.MULTILINE)
        assert found is not None
        return int(found[1])

    def change(self, pool: str, method: str, path: str = "") -> None:
        status, body = ask(self.picker.admin, f"/pools/{pool}{path}", method)
        assert status < 300, body


def with_tls_and_hints(cert: Path, key: Path, config: dict[str, Any]) -> None:
    """Let an Envoy have TLS, and a filter that turns a header into the hint, as a mesh might do."""
    [listener] = config["static_resources"]["listeners"]
    [chain] = listener["filter_chains"]
    pair = {"certificate_chain": {"filename": str(cert)}, "private_key": {"filename": str(key)}}
    context = {"@type": _TLS, "common_tls_context": {"tls_certificates": [pair]}}
    chain["transport_socket"] = {"name": "tls", "typed_config": context}
    found = {"metadata_namespace": SUBSET_NAMESPACE, "key": SUBSET, "type": "STRING"}
    rules = [{"header": TRUSTED, "on_header_present": found, "remove": True}]
    filters = chain["filters"][0]["typed_config"]["http_filters"]
    filters.insert(0, {"name": "hints", "typed_config": {"@type": _FILTERS, "request_rules": rules}})


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    _, cert, key = make_certificates(tmp_path_factory.mktemp("tls"))
    sticky = parse_sticky("cookie")
    with ExitStack() as stack:
        pools = [stack.enter_context(PoolProcess()) for _ in range(3)]
        named = [word for pool in pools for word in ("--pool", pool.address)]
        options = ("--alpha", "0.6", "--slow-start", "0", "--sticky", "cookie", "--sticky-margin", str(MARGIN))
        picker = stack.enter_context(Picker(*options, *named))
        changes = (lambda config: None, lambda config: with_tls_and_hints(cert, key, config))
        envoys = [
            stack.enter_context(Envoy(picker, patient=True, sticky=sticky, change=change)) for change in changes
        ]
        for pool in pools:
            pool.wait()
        picker.wait()
        for envoy in envoys:
            envoy.wait()
        yield Front(pools, picker, envoys)


@contextmanager
def visits(front: Front) -> Iterator[list[Session]]:
    """Yield a list of sessions, which are closed at the end and no longer counted."""
    opened: list[Session] = []
    try:
        yield opened
    finally:
        for session in opened:
            session.abort()
        front.settled(0)


# --- sticky sessions -------------------------------------------------------------------------------------------


def test_a_client_with_its_cookie_gets_the_same_pool_and_no_new_cookie(front: Front) -> None:
    first, before = front.get(), front.seen("kept")
    assert (first.status, first.attributes) == (200, "; Path=/; HttpOnly; SameSite=Lax")
    for _ in range(6):
        again = front.get("--cookie", f"theme=dark; {first.cookie}; lang=en")
        assert (again.pool, again.cookie) == (first.pool, None)
    assert front.seen("kept") == before + 6


def test_a_cookie_over_tls_is_secure(front: Front) -> None:
    first = front.get_among(None)
    assert first.attributes == "; Path=/; HttpOnly; SameSite=Lax; Secure"
    assert front.get("--cookie", str(first.cookie)).pool == first.pool


def test_a_websocket_returns_and_is_placed_again_above_threshold_and_margin(front: Front) -> None:
    with visits(front) as opened:
        first = Session(front.port).wait()
        opened.append(first)
        cookie, mine = Answer(first.head).cookie, first.pool
        assert cookie is not None
        front.settled(1)
        while True:
            threshold = front.picker.state()["threshold"]
            session = Session(front.port, cookie).wait()
            opened.append(session)
            counts = front.settled(len(opened))
            if session.pool != mine:
                break
            assert Answer(session.head).cookie is None
            assert counts[mine] <= threshold + MARGIN + 1
        assert counts[mine] == threshold + MARGIN + 1
        changed = Answer(session.head).cookie
        assert changed not in {None, cookie}
        assert front.get("--cookie", str(changed), held=len(opened)).pool == session.pool
        state = front.picker.state()
        assert state["tokens"] == {
            "green": sum(count < state["threshold"] for count in counts.values()),
            "yellow": sum(count <= state["threshold"] for count in counts.values()),
        }
        for other in opened:
            other.echo()


def test_a_client_of_a_pool_that_drains_fails_or_is_removed_is_placed_again(front: Front) -> None:
    first = front.get()
    mine, cookie = first.pool, str(first.cookie)

    def placed_again() -> None:
        moved = front.get("--cookie", cookie)
        assert moved.pool != mine
        assert moved.cookie not in {None, cookie}
        again = front.get("--cookie", str(moved.cookie))
        assert (again.pool, again.cookie) == (moved.pool, None)

    front.change(mine, "POST", "/drain")
    placed_again()
    front.change(mine, "POST", "/undrain")
    assert front.get("--cookie", cookie).pool == mine

    front.pool(mine).say("refuse")
    eventually(front.states, lambda states: states[mine] == "failing")
    placed_again()
    front.pool(mine).say("listen")
    eventually(front.states, lambda states: states[mine] == "serving")
    assert front.get("--cookie", cookie).pool == mine

    front.change(mine, "DELETE")
    placed_again()
    status, body = ask(front.picker.admin, "/pools", "POST", {"address": mine})
    assert status == 201, body
    eventually(lambda: front.get("--cookie", cookie), lambda again: (again.pool, again.cookie) == (mine, None))


def test_bad_cookies_are_served_and_counted(front: Front) -> None:
    cookie = str(front.get().cookie)
    name, _, token = cookie.partition("=")
    bad = [
        f"{name}=forged",
        f"{name}={token[:-1]}",
        f"{name}={'x' * 20_000}",
        f"{cookie}; {cookie}",
        f"{name}=",
        f'{name}=%00\\";,',
    ]
    before = front.seen("ignored"), front.seen("kept")
    for value in bad:
        answer = front.get("-H", f"Cookie: {value}")
        assert answer.status == 200
        assert answer.cookie is not None
    assert (front.seen("ignored"), front.seen("kept")) == (before[0] + len(bad), before[1])


def test_cookies_outlive_the_picker_of_a_gateway() -> None:
    with ExitStack() as stack:
        pools = [stack.enter_context(PoolProcess()) for _ in range(2)]
        named = [word for pool in pools for word in ("--pool", pool.address)]
        gateway = stack.enter_context(Gateway("--alpha", "0.6", "--sticky", "cookie", *named))
        for pool in pools:
            pool.wait()
        gateway.wait()
        url = f"http://127.0.0.1:{gateway.port}/"
        first = eventually(lambda: curl(url), lambda answer: answer.cookie is not None)
        old = children(gateway.pid)["picker"]
        os.kill(old, signal.SIGKILL)
        eventually(lambda: children(gateway.pid), lambda found: found.get("picker", old) != old)

        def kept() -> bool:
            again = curl(url, "--cookie", str(first.cookie))
            picks = ask(gateway.admin, "/metrics")[1] if again.status == 200 else ""
            return again.pool == first.pool and 'result="kept"} 0' not in picks and 'result="kept"}' in picks

        eventually(lambda: _unless_away(kept), bool)


def _unless_away(look: Any) -> bool:  # noqa: ANN401
    try:
        return bool(look())
    except OSError:  # the picker is not back yet
        return False


# --- subset hints ----------------------------------------------------------------------------------------------


def test_picks_stay_inside_the_subset_of_the_metadata(front: Front) -> None:
    one, two, three = (pool.address for pool in front.pools)
    for subset, pools in ((one, {one}), (f"{two},{three}", {two, three}), (f"192.0.2.1:80,{three}", {three})):
        assert {front.get_among(subset).pool for _ in range(4)} <= pools


def test_a_header_of_that_name_has_no_influence(front: Front) -> None:
    one, two, _ = (pool.address for pool in front.pools)
    forged = ("-H", f"{SUBSET}: {one}", "-H", f"x-gateway-destination-endpoint: {one}")
    assert front.get_among(two, *forged).pool == two
    assert front.get_among(None, "-H", f"{SUBSET}: 192.0.2.1:80").status == 200


def test_without_an_eligible_endpoint_the_client_gets_503(front: Front) -> None:
    one = front.pools[0].address
    front.change(one, "POST", "/drain")
    for subset in (one, "192.0.2.1:80", "nonsense"):
        answer = front.get_among(subset)
        assert (answer.status, answer.pool) == (503, "No server pool of the requested subset can serve.\n")
    front.change(one, "POST", "/undrain")
    assert front.get_among(one).pool == one


def test_a_retry_stays_inside_the_subset(front: Front) -> None:
    """The first pool resets the connections of all requests meanwhile."""
    one, two, _ = (pool.address for pool in front.pools)
    front.pools[0].say("reset")
    cookie = str(front.get_among(two).cookie)
    before = front.picker.state()["moved_sessions"]
    for _ in range(8):
        assert front.get_among(f"{one},{two}").pool == two
    assert front.get_among(f"{one},{two}", "--cookie", cookie).cookie is None
    assert front.picker.state()["moved_sessions"] >= before
    front.pools[0].say("answer")
