"""One browser for all tests of a module. Each test gets pages of its own, which are watched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.web.support import CHROMIUM, FLAGS, Watched, watched


@pytest.fixture(scope="module")  # not the session: while Playwright runs, no other module can run an event loop
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def watch(browser: Browser) -> Iterator[Watched]:
    """Pages that fail the test if an error is on the console, or if a request leaves the machine."""
    with watched(browser) as each:
        yield each
