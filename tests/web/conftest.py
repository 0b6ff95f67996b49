"""One browser for all tests of a module. Each test gets pages of its own, which are watched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.needs import needs
from tests.web.support import FLAGS, Watched, own_home, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")  # not the session: while Playwright runs, no other module can run an event loop
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    program = needs("chromium")
    with sync_playwright() as playwright:
        home = own_home(tmp_path_factory.mktemp("browser"))
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS), env=home)
        yield browser
        browser.close()


@pytest.fixture
def watch(browser: Browser) -> Iterator[Watched]:
    """Pages that fail the test if an error is on the console, or if a request leaves the machine."""
    with watched(browser) as each:
        yield each
