"""The dashboard in a real browser, on real processes: pools that drain, logins, a picker that dies."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from evenly.live.dashboard.source import Figures, Part, Pools, Source
from evenly.live.threshold_log import ThresholdLog
from tests.live.clients import Traffic, sessions
from tests.live.dispatcher.rig import Dispatcher, fleet
from tests.live.processes import eventually, free_port
from tests.live.rig import Gateway, Picker, PoolProcess
from tests.live.stores import running_store
from tests.live.test_gateway import children
from tests.web.balancer_port import BalancerPort
from tests.web.dashboard_page import DashboardPage
from tests.web.support import DESK, PHONE, Watched, assert_accessible, expect, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TOKEN = "a-token-of-many-characters"


@pytest.fixture(scope="module")
def pools() -> Iterator[list[PoolProcess]]:
    with ExitStack() as stack:
        started = [stack.enter_context(PoolProcess()) for _ in range(4)]
        for pool in started:
            pool.wait()
        yield started


@pytest.fixture(scope="module")
def gateway(pools: list[PoolProcess]) -> Iterator[Gateway]:
    """A gateway in front of all pools but the last."""
    words = [word for pool in pools[:-1] for word in ("--pool", pool.address)]
    with Gateway(*words, "--alpha", "0.6", "--slow-start", "1", "--drain-timeout", "0") as made:
        made.wait()
        eventually(made.state, lambda state: any(envoy["reachable"] for envoy in state["envoys"]))
        yield made


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Picker]:
    """A picker with a token. Its pools need not exist: no Envoy asks."""
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(TOKEN)
    words = [word for _ in range(2) for word in ("--pool", f"127.0.0.1:{free_port()}")]
    with Picker("--alpha", "0.6", "--admin-token-file", str(file), *words) as made:
        made.wait()
        yield made


def opened(watch: Watched, port: int, *, size: tuple[int, int] = DESK) -> DashboardPage:
    return DashboardPage(watch.page(f"http://127.0.0.1:{port}/", size=size))


# --- a gateway under traffic -----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_drained_pool_empties_before_the_readers_eyes(
    watch: Watched, gateway: Gateway, pools: list[PoolProcess]
) -> None:
    dashboard = opened(watch, gateway.admin, size=(1440, 600)).wait_live()  # the table reaches the lower edge
    expect(dashboard.page).to_have_title(f"evenly gateway 127.0.0.1:{gateway.admin}")
    drained = pools[0]
    with ExitStack() as stack:
        with sessions(gateway.port, 6):  # an idle balancer fills empty pools first, so each pool has some
            traffic = stack.enter_context(Traffic(gateway.port, clients=2, stay=0.1))
            eventually(lambda: dashboard.sessions(drained.address), lambda count: count > 0)
            question = dashboard.ask("Drain", drained.address)
            assert "The pool gets no new sessions." in question
            assert "You get a report when it is empty." in question
            dashboard.confirm()
            dashboard.expect_state(drained.address, "draining")
            dashboard.expect_report(f"Pool {drained.address} is draining.")
            eventually(lambda: dashboard.sessions(drained.address), lambda count: count == drained.sessions > 0)
        dashboard.expect_report(f"Pool {drained.address} is empty.")
        assert drained.sessions == 0
        eventually(lambda: pools[1].sessions + pools[2].sessions, lambda count: count > 0)
    assert traffic.failures == []

    dashboard.page.locator("#event-kind").select_option("pool")
    dashboard.page.locator("#event-text").fill("draining")
    expect(dashboard.page.locator("#events li")).to_have_count(1)
    expect(dashboard.page.locator("#events li")).to_contain_text(f"pool {drained.address}")

    # All by keyboard: Undrain is the first button of the first row.
    page = dashboard.page
    page.get_by_role("button", name=f"Undrain {drained.address}").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#confirm-no")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#confirm")).to_be_hidden()
    dashboard.expect_state(drained.address, "draining")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    dashboard.expect_report(f"Pool {drained.address} gets sessions again.")
    dashboard.expect_report(f"Pool {drained.address} is serving.")
    expect(page.locator("#live")).to_contain_text("is serving.")


@pytest.mark.full
def test_a_pool_is_added_and_removed(watch: Watched, gateway: Gateway, pools: list[PoolProcess]) -> None:
    watch.expect("409|422")  # browsers report these on the console
    dashboard = opened(watch, gateway.admin, size=PHONE).wait_live()
    page = dashboard.page
    page.get_by_role("button", name="Add a pool").click()
    expect(page.locator("#confirm-text")).to_contain_text("It stays until it is removed, also after a restart.")
    field = page.get_by_label("Address of the pool")
    for wrong, reason in (("nonsense", "must be"), (pools[0].address, "already exists")):
        field.fill(wrong)
        page.keyboard.press("Enter")
        expect(page.locator("#confirm-problem")).to_contain_text(reason)
    field.fill(pools[-1].address)
    weight = page.get_by_label("Weight")
    for wrong, reason in (("heavy", "must be a number"), ("", "must be a number"), ("0", "must be")):
        weight.fill(wrong)
        page.keyboard.press("Enter")
        expect(page.locator("#confirm-problem")).to_contain_text(reason)
    weight.fill("2.5")
    dashboard.confirm()
    dashboard.expect_report(f"Pool {pools[-1].address} was added.")
    dashboard.expect_report(f"Pool {pools[-1].address} is serving.")
    row = page.locator("#rows tr", has_text=pools[-1].address)
    expect(row.locator("td").nth(1)).to_have_text("2.5")
    assert "so it is gone at once" in dashboard.ask("Remove", pools[-1].address)
    dashboard.confirm()
    dashboard.expect_report(f"Pool {pools[-1].address} is gone.")
    expect(page.locator("#rows tr")).to_have_count(len(pools) - 1)


def test_the_dashboard_is_accessible(watch: Watched, gateway: Gateway, pools: list[PoolProcess]) -> None:
    dashboard = opened(watch, gateway.admin).wait_live()
    expect(dashboard.page.locator("#parts tr")).to_have_count(2)  # the picker and its Envoy
    expect(dashboard.page.get_by_role("heading", name="Messages per session")).to_have_count(0)  # none travels
    assert_accessible(dashboard.page)
    dashboard.ask("Remove", pools[0].address)
    assert_accessible(dashboard.page, sizes=(PHONE,))


@pytest.mark.full
def test_the_events_of_the_supervisor_are_shown(watch: Watched, gateway: Gateway) -> None:
    """Also those from before the picker was restarted. The page finds the new picker by itself."""
    watch.expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE")
    dashboard = opened(watch, gateway.admin).wait_live()
    page = dashboard.page
    os.kill(children(gateway.pid)["envoy"], signal.SIGKILL)
    page.locator("#event-kind").select_option("problem")
    expect(page.locator("#events")).to_contain_text("envoy died")
    page.locator("#event-kind").select_option("process")
    expect(page.locator("#events")).to_contain_text("envoy is back")
    os.kill(children(gateway.pid)["picker"], signal.SIGKILL)
    expect(page.locator("#events")).to_contain_text("picker is back")
    expect(page.locator("#events li", has_text="envoy died")).to_have_count(1)
    expect(page.locator("#events li", has_text="picker died")).to_have_count(1)
    assert len([line for line in gateway.output().splitlines() if "envoy died" in line]) == 1, "written once"


# --- logins, and a picker that dies ----------------------------------------------------------------------------


def type_token(page: Page, token: str, *, keep: bool = False) -> None:
    field = page.get_by_label("Admin token")
    expect(field).to_be_focused()
    field.fill(token)
    page.get_by_label("Keep me logged in").set_checked(keep)
    field.focus()
    page.keyboard.press("Enter")


def kept_in_tab(page: Page) -> str:
    kept: str = page.evaluate("JSON.stringify({ ...sessionStorage })")
    return kept


@pytest.mark.full
def test_a_login_ends_with_its_tab(watch: Watched, guarded: Picker) -> None:
    watch.expect("40[13]")
    first = opened(watch, guarded.admin)
    type_token(first.page, f"{TOKEN}x")
    expect(first.page.locator("#login-error")).to_have_text("This is not the admin token.")
    expect(first.page.locator("#app")).to_be_hidden()
    assert_accessible(first.page)
    type_token(first.page, TOKEN)
    first.wait_live()
    first.page.reload()
    first.wait_live()
    assert TOKEN not in first.page.url + kept_in_tab(first.page) + first.page.content()
    assert first.page.evaluate("localStorage.length") == 0
    assert watch.context.cookies() == []

    second = opened(watch, guarded.admin)  # a new tab does not know of it
    expect(second.page.get_by_label("Admin token")).to_be_visible()
    first.page.get_by_role("button", name="Log out").click()
    expect(first.page.get_by_label("Admin token")).to_be_visible()
    assert kept_in_tab(first.page) == "{}"


@pytest.mark.full
def test_a_picker_that_dies_makes_the_page_stale_until_it_is_back(watch: Watched, guarded: Picker) -> None:
    watch.expect("401|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET")
    first = opened(watch, guarded.admin)
    type_token(first.page, TOKEN, keep=True)
    first.wait_live()
    [cookie] = watch.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert TOKEN not in cookie["value"]
    assert kept_in_tab(first.page) == "{}"
    dashboard = opened(watch, guarded.admin).wait_live()  # asked for: another tab is logged in too

    guarded.kill()
    dashboard.wait_stale()
    expect(dashboard.page.locator("#live")).to_contain_text("The connection is lost. Figures are stale.")
    expect(dashboard.page.locator("#rows tr")).to_have_count(2)  # the last figures stay
    guarded.start()
    guarded.wait()
    dashboard.wait_live()
    first.wait_live()
    expect(dashboard.page.locator("#app")).not_to_have_class("stale")
    expect(dashboard.page.locator("#rows tr")).to_have_count(2)
    first.page.get_by_role("button", name="Log out").click()
    expect(first.page.get_by_label("Admin token")).to_be_visible()
    assert watch.context.cookies() == []


# --- sizes and kinds -------------------------------------------------------------------------------------------

COLORS = """canvas => {
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const colors = new Set();
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] === 255) colors.add(data.slice(at, at + 3).join());
    }
    return colors.size;
}"""


@pytest.mark.full
def test_a_thousand_pools(browser: Browser) -> None:
    port = BalancerPort(1000, 6.5, rate=200)
    with port.serving(), watched(browser, still=True) as watch:
        dashboard = DashboardPage(watch.page(port.url)).wait_live()
        page = dashboard.page
        expect(page.locator("#page")).to_have_text("Page 1 of 100, 1,000 pools")
        expect(page.locator("#bars")).to_have_attribute(
            "aria-label", re.compile("1,000 pools: .* The threshold is")
        )
        eventually(lambda: page.locator("#bars").evaluate(COLORS), lambda colors: colors >= 4)

        page.locator("#bars").click(position={"x": 60, "y": 30})
        expect(page.locator("#find")).to_have_value(re.compile(r"^10\.0\."))
        page.locator("#find").fill("10.0.3.77:")
        expect(page.locator("#rows tr")).to_have_count(1)
        page.locator("#find").fill("")
        page.get_by_role("button", name="Next").click()
        expect(page.locator("#page")).to_contain_text("Page 2 of 100")
        page.locator("#order").select_option("most")
        shown = [int(text) for text in page.locator("#rows td.sessions").all_inner_texts()]
        assert min(shown) >= max(pool.sessions for pool in port.balancer.pools) - 2, (
            "sessions come and go meanwhile"
        )

        port.balancer.drain(port.balancer.pools[500].address)
        page.locator("#state").select_option("draining")
        expect(page.locator("#rows tr")).to_have_count(1)
        expect(page.locator("#tiles")).to_contain_text("999 serving, 1 draining")
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


HEIGHT = """(canvas, column) => { // from the base of a column to the first gap above it; see bars.js
    const scale = 0.8 * parseFloat(getComputedStyle(document.body).fontSize) / 12;
    const left = Math.round(34 * scale + (column + 0.5) * 110 * scale - 24 * scale);
    const base = Math.round(210 * scale);
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const row = y => copy.getImageData(left, y, 48 * scale, 1).data;
    let y = base;
    while (y > 0 && row(y).some((value, at) => at % 4 === 3 && value > 99)) y -= 1;
    return base - y;
}"""


def test_columns_begin_at_zero(browser: Browser) -> None:
    port = BalancerPort(4, 29)
    drained = port.balancer.pools[0]
    port.balancer.drain(drained.address)
    for session in [each for each in port.sessions if each.pool is drained][:10]:
        session.close()
    with port.serving(), watched(browser, still=True) as watch:
        page = DashboardPage(watch.page(port.url)).wait_live().page
        expect(page.locator("#tiles")).to_contain_text("Fullest pool29emptiest 29")  # of those that serve
        bars = page.locator("#bars")
        eventually(
            lambda: bars.evaluate(HEIGHT, 0) / max(bars.evaluate(HEIGHT, 1), 1),
            lambda ratio: ratio == pytest.approx(19 / 29, abs=0.03),
        )


@pytest.mark.full
def test_a_page_that_opens_late_shows_what_was_before(watch: Watched) -> None:
    port = BalancerPort(5, 3)
    figures = port.feed.source.figures()
    for minute in range(60):
        port.feed._history.note(figures, port.feed._clock() - 60 * (60 - minute))
    port.feed._history.note(replace(figures, spread=9.0), port.feed._clock() - 2)
    with port.serving():
        dashboard = DashboardPage(watch.page(port.url)).wait_live()
        expect(dashboard.page.locator("#tiles")).to_contain_text(re.compile("Spread[1-9]"))  # now it is 0
        chart = dashboard.page.get_by_role(
            "img", name="Sessions over the last hour: now 15, lowest 15, highest 15."
        )
        expect(chart).to_be_visible()
        expect(dashboard.page.locator("#events li")).to_have_count(10)  # five pools, each added and reached


AGREE = """() => ["Sessions", "Starts per second", "Threshold", "Spread"].map(title => {
    const named = each => each.querySelector("h2").textContent === title;
    const tile = [...document.querySelectorAll(".tile")].find(named).querySelector(".value").textContent;
    const chart = [...document.querySelectorAll("figure")].find(named).querySelector(".chart-now").textContent;
    return [tile, chart];
})"""


@pytest.mark.full
def test_tiles_charts_and_events_say_the_same_in_plain_words(watch: Watched) -> None:
    port = BalancerPort(5, 3, rate=100)
    before = replace(port.feed.source.figures(), sessions=99, threshold=7, spread=9.0)
    port.feed._history.note(before, port.feed._clock() - 3)
    thresholds = ThresholdLog(port.log)
    for old, new in pairwise([1, 2, 8, 0, 3]):  # the first change has a line, and the others share one
        thresholds.changed(before=old, threshold=new)
    thresholds.close()
    with port.serving():
        page = DashboardPage(watch.page(port.url)).wait_live().page
        figures = page.evaluate(AGREE)
        assert all(tile == chart for tile, chart in figures), figures
        assert figures[0] == ["15", "15"]
        lines = page.locator("#events li")
        expect(lines.filter(has_text="threshold 1 → 2")).to_have_text(re.compile("threshold 1 → 2 $"))
        expect(lines.filter(has_text="threshold 2 → 3")).to_contain_text("threshold 2 → 3 (between 0 and 8)")
        expect(page.locator("#events")).to_contain_text("pool 10.0.0.5:8080")
        expect(page.locator("#events")).not_to_contain_text("endpoint")  # it is the pool's own address
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        expect(page.locator("#events")).to_be_hidden()
        page.locator("summary", has_text="Events").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#events")).to_be_visible()


@pytest.mark.full
def test_a_hidden_tab_leaves_its_connection_to_others(watch: Watched) -> None:
    """Browsers open at most six to a port."""
    hide = """hidden => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    port = BalancerPort(2, 3)
    with port.serving():
        page = DashboardPage(watch.page(port.url)).wait_live().page
        page.evaluate(hide, True)
        eventually(lambda: len(port.feed._readers), lambda count: count == 0)
        page.evaluate(hide, False)
        expect(page.locator("#status")).to_have_text("Live")
        assert len(port.feed._readers) == 1


TOP = "each => each.getBoundingClientRect().top + scrollY"
BOTTOM = "each => each.getBoundingClientRect().bottom + scrollY"


class WeightedSource:
    """Shows the pools of another source with weights 1 and 4, each with a threshold of its own."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.about = source.about
        self.parts = source.parts

    def figures(self) -> Figures:
        return replace(self._source.figures(), thresholds={1.0: 3, 4.0: 12})

    def pools(self) -> Pools:
        pools = self._source.pools()
        return replace(pools, weights=[1.0, 4.0] * (len(pools.names) // 2))


@pytest.mark.full
def test_weights_are_shown_where_they_differ(watch: Watched) -> None:
    port = BalancerPort(4, 3)
    port.feed.source = WeightedSource(port.feed.source)
    with port.serving():
        page = DashboardPage(watch.page(port.url)).wait_live().page
        expect(page.get_by_role("columnheader", name="Weight")).to_be_visible()
        assert page.locator("#rows td:nth-child(2)").all_inner_texts() == ["1", "4", "1", "4"]
        expect(page.locator("#tiles")).to_contain_text("pools have different weights")
        eventually(lambda: page.locator("#bars").evaluate(COLORS), lambda colors: colors >= 3)


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_reports_leave_the_table_where_it_is(watch: Watched, size: tuple[int, int]) -> None:
    """A click on a button must not hit another row because a report has come or gone."""
    port = BalancerPort(6, 3)
    with port.serving():
        dashboard = DashboardPage(watch.page(port.url, size=size)).wait_live()
        table, reports = dashboard.page.locator(".pools"), dashboard.page.locator(".report")
        before = table.evaluate(TOP)
        for count, pool in enumerate(port.balancer.pools[:5], start=1):
            dashboard.ask("Drain", str(pool.address))
            dashboard.confirm()
            expect(reports).to_have_count(count)
            assert table.evaluate(TOP) == before
        dashboard.expect_state(str(port.balancer.pools[4].address), "draining")
        assert table.evaluate(TOP) == before
        for report in reports.all():
            report.scroll_into_view_if_needed()
            assert report.evaluate(BOTTOM) <= before
        assert_accessible(dashboard.page, sizes=(size,))
        reports.first.get_by_role("button").click()
        expect(reports).to_have_count(4)
        assert table.evaluate(TOP) == before


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "x" * 250,
    "</script><script>alert(1)</script>",
    "\u202e\u0000\ud83d\ude00",
]


class HostileSource(WeightedSource):
    """Shows pools, processes and states under hostile names."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.parts = lambda: [Part(kind="Envoy", name=name, reachable=True, note=name) for name in HOSTILE]

    def pools(self) -> Pools:
        return replace(super().pools(), names=HOSTILE, addresses=HOSTILE)


@pytest.mark.full
def test_hostile_names_are_shown_as_text_and_stay_in_their_place(watch: Watched) -> None:
    watch.expect("404|422")
    port = BalancerPort(4, 3)
    port.feed.source = HostileSource(port.feed.source)
    for name in HOSTILE:
        port.log.event(f"pool {name}", pool=name)
    with port.serving():
        dashboard = DashboardPage(watch.page(port.url, size=PHONE)).wait_live()
        page = dashboard.page
        page.on("dialog", lambda dialog: pytest.fail(f"a script of a name ran: {dialog.message}"))
        for name in HOSTILE[:3]:
            expect(page.locator("#rows")).to_contain_text(name)
            expect(page.locator("#parts")).to_contain_text(name)
            expect(page.locator("#events")).to_contain_text(name)
            assert page.locator("#rows img, #parts img, #events img, main script").count() == 0
            dashboard.ask("Drain", name)
            assert page.locator("#confirm").evaluate("each => each.scrollWidth <= each.clientWidth")
            dashboard.page.locator("#confirm-yes").click()  # there is no such pool here
            expect(page.locator("#confirm-problem")).not_to_be_empty()
            page.keyboard.press("Escape")
        page.locator("#bars").hover(position={"x": 120, "y": 100})
        expect(page.locator("#bar-label")).to_contain_text("x" * 250)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.full
def test_the_dispatcher_has_a_dashboard(watch: Watched) -> None:
    with fleet() as (dispatcher, agents):
        placed = [dispatcher.post().json() for _ in range(3)]
        for session in placed:
            agents.arrive(session)
        dashboard = opened(watch, dispatcher.admin_port).wait_live()
        page, pool = dashboard.page, placed[0]["pool"]
        expect(page.locator("#title")).to_contain_text("dispatcher")
        expect(page.get_by_role("button", name="Add a pool")).to_be_hidden()
        expect(page.locator("#legend")).to_contain_text("striped: full")
        expect(page.locator("#legend")).not_to_contain_text("warming")
        expect(page.locator("#parts tr")).to_have_count(4)  # the dispatcher and three agents
        expect(page.locator("#tiles")).to_contain_text("Messages per session")
        expect(page.locator("#messages")).to_contain_text("green tokens")
        assert "also if its agent restarts" in dashboard.ask("Drain", pool)
        dashboard.confirm()
        expect(page.get_by_role("button", name=f"Undrain {pool}", exact=True)).to_be_visible()
        for session in placed:
            agents.end(session["pool"], session["id"])
        dashboard.expect_report(f"Pool {pool} is empty.")


@pytest.mark.full
def test_the_other_dispatchers_of_a_fleet_are_listed(watch: Watched) -> None:
    with running_store("valkey") as store:
        options = (f"--store={store.url}", "--fleet=games")
        with Dispatcher(*options) as one, Dispatcher(*options) as other:
            names = [f"dispatcher {socket.gethostname()}:{each.admin_port}" for each in (one, other)]
            pages = [opened(watch, each.admin_port).wait_live().page for each in (one, other)]
            for page, name in zip(pages, reversed(names), strict=True):
                row = page.locator("#parts tr", has_text=name)
                expect(row).to_have_attribute("data-status", "ok")
                expect(row.locator("td").nth(1)).to_have_text(re.compile(r"^\d+ (s|min)$"))
                expect(row.locator("td").nth(2)).to_have_text(re.compile(r"^\d+ s ago$"))
                expect(page.locator("#parts tr")).to_have_count(3)  # this one, the store, and the other
            watch.expect("ERR_")
            other.kill(signal.SIGTERM)
            expect(pages[0].locator("#parts")).not_to_contain_text(names[1])  # it left in order
            expect(pages[0].locator("#parts")).to_contain_text("store shared")
