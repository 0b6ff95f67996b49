"""The dashboard as a reader uses it, for the tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.web.support import expect

if TYPE_CHECKING:
    from playwright.sync_api import Page


_COVERS_TABLE = """report => {
    const pools = document.querySelector(".pools");
    pools.scrollIntoView({ block: "end" });
    const box = report.getBoundingClientRect(), table = pools.getBoundingClientRect();
    return box.bottom > table.top && box.top < table.bottom;
}"""


class DashboardPage:
    """An open dashboard. `expect` waits, so nothing here depends on how fast the machine is."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def wait_live(self) -> DashboardPage:
        expect(self.page.locator("#status")).to_have_text("Live")
        return self

    def wait_stale(self) -> None:
        expect(self.page.locator("#status")).to_have_text(re.compile("^Stale: last update"))
        expect(self.page.locator("#app")).to_have_class(re.compile("stale"))

    def expect_state(self, pool: str, state: str) -> None:
        expect(self.page.locator("#rows tr", has_text=pool).locator(".state")).to_have_text(state)

    def sessions(self, pool: str) -> int:
        return int(self.page.locator("#rows tr", has_text=pool).locator("td.sessions").inner_text())

    def expect_report(self, text: str) -> None:
        """Wait for a report, and close it. It must not cover the table."""
        report = self.page.locator(".report", has_text=text)
        expect(report).to_be_visible()
        assert not report.evaluate(_COVERS_TABLE)
        report.get_by_role("button").click()
        expect(report).to_have_count(0)

    def ask(self, action: str, pool: str) -> str:
        """Press a pool's button; return the question."""
        self.page.get_by_role("button", name=f"{action} {pool}", exact=True).click()
        return self.page.locator("#confirm-text").inner_text()

    def confirm(self) -> None:
        self.page.locator("#confirm-yes").click()
        expect(self.page.locator("#confirm")).to_be_hidden()
