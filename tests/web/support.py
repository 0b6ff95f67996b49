"""A real browser for the tests: pages that are watched, and the accessibility rules of axe-core."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        Locator,
        Page,
        Request,
        Route,
    )
    from playwright.sync_api._generated import LocatorAssertions, PageAssertions

ROOT = Path(__file__).parents[2]
EXPECT_S = 30.0  # on a busy machine
# Without these, Chromium would look for updates, and its connections would be refused one by one.
FLAGS = (
    "--no-sandbox",  # it refuses to run as root otherwise
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
PHONE, DESK = (375, 740), (1440, 900)
WIDTHS = (PHONE, DESK)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LOCAL = {"127.0.0.1", "localhost", "::1"}
_END_TRANSITIONS = """() => {
    for (const each of document.getAnimations()) if (each instanceof CSSTransition) each.finish();
}"""
_AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"


def own_home(folder: Path) -> dict[str, str | float | bool]:
    """Return an environment in which a browser writes to this folder, and not to the user's home."""
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(folder))
    return {**os.environ, **homes}


class Watched:
    """A browser context that records what must not happen: errors on the console, requests to other machines."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self._errors: list[str] = []
        self._expected: list[re.Pattern[str]] = []
        self._left: list[str] = []
        context.route("**/*", self._stop_if_leaving)
        context.on("console", lambda message: self._note(message.type, message.text))
        context.on("weberror", lambda error: self._errors.append(str(error.error)))

    def page(self, url: str = "", *, size: tuple[int, int] = DESK) -> Page:
        """Open a page of this size, at this address if one is given."""
        page = self.context.new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        if url:
            page.goto(url)
        return page

    def expect(self, pattern: str) -> None:
        """Allow errors on the console that match: browsers report every rejected request there."""
        self._expected.append(re.compile(pattern))

    def check(self) -> None:
        """Fail if something happened that must not."""
        errors = [text for text in self._errors if not any(each.search(text) for each in self._expected)]
        assert errors == [], "errors on the console"
        assert self._left == [], "requests that left the machine"

    def _note(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self._errors.append(text)

    def _stop_if_leaving(self, route: Route, request: Request) -> None:
        if stays_here(request.url):
            route.continue_()
        else:
            self._left.append(request.url)
            route.abort()


def stays_here(url: str) -> bool:
    """Return whether a request for this URL stays on this machine."""
    parts = urlsplit(url)
    return parts.scheme in {"blob", "data", "about", "file"} or parts.hostname in LOCAL


@contextmanager
def watched(browser: Browser, *, bypass_csp: bool = False, still: bool = False) -> Iterator[Watched]:
    """Open a new context and check it at the end. With `still`, the reader prefers reduced motion."""
    motion: Literal["reduce", "no-preference"] = "reduce" if still else "no-preference"
    context = browser.new_context(bypass_csp=bypass_csp, reduced_motion=motion)
    context.set_default_timeout(30_000)
    try:
        watch = Watched(context)
        yield watch
        watch.check()
    finally:
        context.close()


def assert_accessible(page: Page, *, sizes: tuple[tuple[int, int], ...] = WIDTHS) -> None:
    """Fail if axe-core finds a problem in the page as it is, at these sizes and in both color schemes.

    Also fails if the page is wider than the screen. The page keeps the last size and scheme.
    """
    for width, height in sizes:
        page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.evaluate(_END_TRANSITIONS)  # in which colors are in between
            found = _violations(page)
            assert found == [], f"{width} px, {scheme}: {found}"
        scrolled = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert scrolled <= 0, f"the page is {scrolled} px wider than a screen of {width} px"


def _violations(page: Page) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(
            _AXE.read_text(encoding="utf-8")
        )  # not a script element: our policy allows no inline scripts
    result = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {node['html'][:200]} ({node['failureSummary']})"
        for rule in result["violations"]
        for node in rule["nodes"]
    ]


@overload
def expect(actual: Page) -> PageAssertions: ...
@overload
def expect(actual: Locator) -> LocatorAssertions: ...
def expect(actual: Page | Locator) -> PageAssertions | LocatorAssertions:
    """Return Playwright's assertions. It is imported here, so that the other tests need not load it."""
    from playwright.sync_api import expect as assertions

    assertions.set_options(timeout=1000 * EXPECT_S)
    return assertions(actual)
