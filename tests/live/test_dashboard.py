"""The dashboard's data: logins, the last hour, and a stream that many readers share."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from evenly.live.addresses import Address
from evenly.live.dashboard.feed import MAX_READERS, MAX_WAITING, Reader
from evenly.live.dashboard.frames import STATE_STEPS, TOKEN_STEPS, line_json
from evenly.live.dashboard.history import HOUR_S, POINTS, SAMPLE_S, History
from evenly.live.dashboard.login import KEPT_S, TAB_S, GrantKind, Logins
from evenly.live.dashboard.source import Figures, spread_of
from evenly.live.log import Line
from tests.web.balancer_port import BalancerPort

TOKEN = "a-token-of-many-characters"
PATIENCE = 60.0
PAGE = {"X-Evenly-Dashboard": "1"}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


# --- logins ----------------------------------------------------------------------------------------------------


def test_a_grant_is_for_its_kind_its_time_and_its_token() -> None:
    clock = Clock()
    logins = Logins(TOKEN, clock=clock)
    for kind, other, seconds in (
        (GrantKind.TAB, GrantKind.COOKIE, TAB_S),
        (GrantKind.COOKIE, GrantKind.TAB, KEPT_S),
    ):
        grant = logins.grant(kind)
        assert logins.accepts(grant, kind)
        assert not logins.accepts(grant, other)
        assert Logins(TOKEN, clock=clock).accepts(grant, kind), "it survives a restart"
        assert not Logins(f"{TOKEN}x", clock=clock).accepts(grant, kind), "a new token ends it"
        clock.now += seconds
        assert not logins.accepts(grant, kind)
        clock.now -= seconds


def test_a_grant_cannot_be_changed_or_made_up() -> None:
    logins = Logins(TOKEN)
    grant = logins.grant(GrantKind.TAB)
    assert TOKEN not in grant
    for position in range(len(grant)):
        changed = grant[:position] + ("0" if grant[position] != "0" else "1") + grant[position + 1 :]
        assert not logins.accepts(changed, GrantKind.TAB), position
    for text in ("", ".", "...", TOKEN, grant[:-1], f"{grant}.", "x" * 1000, "\u00e9", "tab.9999999999.00."):
        assert not logins.accepts(text, GrantKind.TAB), text


def test_numbers_that_a_browser_would_round_are_texts() -> None:
    line = Line(1, 2.0, "threshold changed", {"epoch": 932_596_867_802_333_204, "changes": 4, "replaced": False})
    assert line_json(line)[3] == {"epoch": "932596867802333204", "changes": 4, "replaced": False}


# --- the last hour ---------------------------------------------------------------------------------------------


def figures(**changed: Any) -> Figures:  # noqa: ANN401
    values: dict[str, Any] = {
        "policy": "threshold", "alpha": 0.9, "threshold": 5, "thresholds": {}, "sessions": 10, "starts": 20,
        "spread": 0.5, "tokens": (0, 1), "messages": {"green": 3},
    }  # fmt: skip
    return Figures(**{**values, **changed})


def test_the_history_has_an_hour_and_no_more() -> None:
    history, now = History(), 1000.0
    for starts in range(3 * POINTS):
        assert history.is_due(now)
        history.note(figures(starts=starts), now)
        assert not history.is_due(now + SAMPLE_S / 2)
        now += SAMPLE_S
    rows = list(history.rows())
    assert len(rows) == POINTS
    assert rows[-1][0] - rows[0][0] == HOUR_S - SAMPLE_S  # type: ignore[operator]
    assert rows[-1] == [now - SAMPLE_S, 10, 3 * POINTS - 1, 5, 0.5]
    assert history.is_due(now - HOUR_S), "a clock that was set back does not stop it"


# --- the stream ------------------------------------------------------------------------------------------------


class Page:
    """What a page knows from its stream: it applies the messages as the script does."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.events: list[str] = []
        self.names: list[str] = []
        self.numbers: list[int] = []
        self.lines: list[list[Any]] = []
        self.data: dict[str, Any] = {}

    async def read(self) -> None:
        """Take in the messages that wait."""
        messages = self.reader.messages()
        while self.reader._waiting.qsize():
            first, second = (await anext(messages)).decode().removesuffix("\n\n").split("\n")
            self.events.append(first.removeprefix("event: "))
            self.take(json.loads(second.removeprefix("data: ")))

    def take(self, data: dict[str, Any]) -> None:
        self.data = data
        if "names" in data:
            self.names, self.numbers = data["names"], data["numbers"]
        changes = data.get("changes", [])
        for position, number in zip(changes[::2], changes[1::2], strict=True):
            self.numbers[position] = number
        self.lines += data.get("lines", [])

    def pools(self) -> dict[str, tuple[int, int, int]]:
        """Return sessions, state and token of each pool."""
        split = (divmod(number, TOKEN_STEPS) for number in self.numbers)
        return dict(zip(self.names, ((*divmod(rest, STATE_STEPS), token) for rest, token in split), strict=True))


def truth(port: BalancerPort) -> dict[str, tuple[int, int, int]]:
    states = [state.value for state in type(port.balancer.pools[0].state)]
    holders = port.balancer.token_holders
    assert holders is not None
    green, yellow = holders
    return {
        str(pool.address): (
            pool.sessions,
            states.index(pool.state.value),
            2 if pool in green else 1 if pool in yellow else 0,
        )
        for pool in port.balancer.pools
    }


def test_readers_that_come_at_different_times_know_the_same() -> None:
    port = BalancerPort(40, 6.5)
    balancer = port.balancer

    async def run() -> None:
        feed, pages = port.feed, []
        for round_ in range(12):
            if round_ % 3 == 0:
                pages.append(Page(feed.subscribe()))
            for _ in range(25):
                port.turn_over()
            if round_ == 4:
                balancer.drain(balancer.pools[1].address)
            if round_ == 6:
                balancer.add(Address("10.9.9.9", 80), Address("10.9.9.9", 80))
                balancer.remove(balancer.pools[0].address)
            await feed.tick()
            for page in pages:
                await page.read()
                assert page.pools() == truth(port)
                assert page.data["figures"]["sessions"] == balancer.sessions
                assert page.data["figures"]["threshold"] == balancer.threshold
        assert [page.events[0] for page in pages] == ["hello"] * 4
        assert [set(page.events[1:]) for page in pages] == [{"frame"}] * 4
        assert len({tuple(line[0] for line in page.lines) for page in pages}) == 1, "all have the whole log"
        assert {"pool draining", "pool added", "pool leaving"} <= {line[2] for line in pages[0].lines}

    asyncio.run(run())


def test_a_pool_that_takes_the_place_of_another_is_not_taken_for_it() -> None:
    port = BalancerPort(3, 0)

    async def run() -> None:
        page = Page(port.feed.subscribe())
        await port.feed.tick()
        port.balancer.remove(port.balancer.pools[0].address)  # idle, so it is gone at once
        port.balancer.add(Address("10.9.9.9", 80), Address("10.9.9.9", 80), slowly=False)
        await port.feed.tick()
        await page.read()
        assert page.events == ["hello", "frame"]
        assert page.pools() == truth(port)
        assert page.names[-1] == "10.9.9.9:80"

    asyncio.run(run())


def test_a_reader_that_does_not_keep_up_is_let_go() -> None:
    feed = BalancerPort(2, 1).feed

    async def run() -> None:
        slow, quick = feed.subscribe(), feed.subscribe()
        for _ in range(MAX_WAITING + 3):
            await feed.tick()
            quick._waiting.get_nowait()
        assert (slow.ended, quick.ended) == (True, False)
        feed.unsubscribe(slow)  # it has been let go already
        assert len([text async for text in slow.messages()]) == MAX_WAITING - 1
        feed.close()
        assert quick.ended
        assert [text async for text in quick.messages()] == []
        assert [text async for text in feed.subscribe().messages()] == [], "a stream after the end ends at once"

    asyncio.run(run())


# --- the port --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded() -> Iterator[BalancerPort]:
    with BalancerPort(3, 2, token=TOKEN).serving() as port:
        yield port


@pytest.fixture(scope="module")
def port() -> Iterator[BalancerPort]:
    with BalancerPort(3, 2).serving() as made:
        yield made


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=PATIENCE, trust_env=False) as made:
        yield made


def events(client: httpx.Client, port: BalancerPort, headers: dict[str, str]) -> tuple[int, str]:
    """Open the stream; return its status, and the name of its first event or the reason for a refusal."""
    with client.stream("GET", f"{port.url}dashboard/events", headers=headers) as answer:
        if answer.status_code != 200:
            answer.read()
            return answer.status_code, answer.json()["detail"]
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-store"
        return 200, next(answer.iter_lines())


def log_in(client: httpx.Client, port: BalancerPort, token: str = TOKEN, *, keep: bool = False) -> httpx.Response:
    return client.post(f"{port.url}dashboard/login", json={"token": token, "keep": keep})


def test_the_page_and_its_files_are_served(guarded: BalancerPort, client: httpx.Client) -> None:
    page = client.get(guarded.url)
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
    assert page.headers["content-security-policy"].startswith("default-src 'self';")
    again = client.get(guarded.url, headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    script = page.text.split('src="web/')[1].split('"')[0]
    assert client.get(f"{guarded.url}web/{script}").status_code == 200
    assert client.get(f"{guarded.url}web/nothing.js").status_code == 404


def test_the_stream_is_for_our_page_only(port: BalancerPort, client: httpx.Client) -> None:
    assert events(client, port, PAGE) == (200, "event: hello")
    assert events(client, port, {})[0] == 403, "another site can send this request, but not our header"
    assert events(client, port, {**PAGE, "Origin": "http://127.0.0.1:1"})[0] == 403
    assert events(client, port, {**PAGE, "Host": "evil.example"})[0] == 421
    assert log_in(client, port).status_code == 404, "without a token, there is no login"


def test_a_login_needs_the_token_and_gives_a_grant(guarded: BalancerPort, client: httpx.Client) -> None:
    assert events(client, guarded, PAGE)[0] == 401
    for wrong in ("", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper(), "\u00e9"):
        refused = log_in(client, guarded, wrong)
        assert (refused.status_code, refused.json()) == (403, {"detail": "This is not the admin token."})
    assert log_in(client, guarded, "x" * 5000).status_code == 422

    answer = log_in(client, guarded)
    grant = {"Authorization": f"Bearer {answer.json()['grant']}"}
    assert TOKEN not in answer.text
    assert "set-cookie" not in answer.headers, "nothing that outlives the tab"
    assert answer.headers["cache-control"] == "no-store"
    assert events(client, guarded, {**PAGE, **grant}) == (200, "event: hello")
    assert client.get(f"{guarded.url}state", headers=grant).status_code == 200
    for scheme, status in (("bearer", 200), ("Basic", 401)):
        headers = {"Authorization": grant["Authorization"].replace("Bearer", scheme)}
        assert client.get(f"{guarded.url}state", headers=headers).status_code == status


def test_a_kept_login_is_a_cookie_that_other_pages_cannot_use(guarded: BalancerPort, client: httpx.Client) -> None:
    answer = log_in(client, guarded, keep=True)
    assert answer.json() == {"grant": None}
    cookie = answer.headers["set-cookie"].lower()
    number = guarded.url.rstrip("/").rpartition(":")[2]
    assert cookie.startswith(f"evenly_admin_{number}=cookie.")
    for attribute in ("httponly", "samesite=strict", f"max-age={KEPT_S}", "path=/"):
        assert attribute in cookie
    assert TOKEN not in cookie
    drain = f"{guarded.url}pools/{guarded.balancer.pools[0].address}/drain"

    assert client.get(f"{guarded.url}state").status_code == 401, "the cookie alone is not enough"
    assert client.post(drain).status_code == 401
    assert client.post(drain, headers={**PAGE, "Origin": "http://127.0.0.1:1"}).status_code == 403
    assert guarded.balancer.pools[0].state == "serving"
    assert client.post(drain, headers=PAGE).status_code == 200
    assert client.post(drain.replace("drain", "undrain"), headers=PAGE).status_code == 200
    assert events(client, guarded, PAGE) == (200, "event: hello")

    stolen = {**PAGE, "Authorization": f"Bearer {client.cookies[f'evenly_admin_{number}']}"}
    client.post(f"{guarded.url}dashboard/logout")
    assert events(client, guarded, PAGE)[0] == 401
    assert client.get(f"{guarded.url}state", headers=stolen).status_code == 401


def test_a_stream_ends_with_its_login(guarded: BalancerPort, client: httpx.Client) -> None:
    for seconds in (2, 10, 60):  # on a slow machine, the first may be over before it is used
        grant = Logins(TOKEN, clock=lambda left=seconds: time.time() - TAB_S + left).grant(GrantKind.TAB)  # type: ignore[misc]
        headers = {**PAGE, "Authorization": f"Bearer {grant}"}
        with client.stream("GET", f"{guarded.url}dashboard/events", headers=headers) as answer:
            text = "".join(answer.iter_text())  # until it ends by itself
        if answer.status_code == 200:
            break
    assert "event: hello" in text
    assert events(client, guarded, headers)[0] == 401


def test_too_many_dashboards_are_refused_in_one_sentence(port: BalancerPort, client: httpx.Client) -> None:
    with ExitStack() as stack:
        for _ in range(MAX_READERS):
            answer = stack.enter_context(client.stream("GET", f"{port.url}dashboard/events", headers=PAGE))
            assert answer.status_code == 200
        assert events(client, port, PAGE) == (503, f"There are {MAX_READERS} open dashboards already; close one.")
    for _ in range(1000):  # the server notices that they left
        if events(client, port, PAGE)[0] == 200:
            break
    else:
        pytest.fail("readers that left still count")


def test_the_spread_is_the_standard_deviation() -> None:
    assert spread_of([]) == 0
    assert spread_of([7, 7, 7]) == 0
    assert spread_of([1, 3]) == 1
    assert spread_of([10**9, 10**9 + 2]) == pytest.approx(1)
