"""docs/benchmarks.md: its sections are renewed one by one, and its prose is that of the generator."""

import re
from pathlib import Path

import pytest

from bench.page import FLEET, LIVE, MEASURED, renewed, section

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


def test_updating_a_section_leaves_the_others_unchanged() -> None:
    new = {name: section(name, "a machine", 3, [f"| {name} | 1 | | |"]) for name in MEASURED}
    page = renewed("", {"live-speed": new["live-speed"], "simulator": new["simulator"]})
    assert "| live-speed |" in page
    assert "| live-balance |" not in page
    page = renewed(page, {name: text for name, text in new.items() if name not in ("live-speed", "simulator")})
    places = [page.index(f"| {name} |") for name in MEASURED]
    assert places == sorted(places)
    assert page.index("| late-messages |") < page.index(LIVE) < page.index("| live-balance |")
    assert page.index("| live-memory |") < page.index(FLEET) < page.index("| fleet-balance |")
    changed = section("live-speed", "another machine", 3, ["| other figures | 2 | | |"])
    after = renewed(page, {"live-speed": changed})
    assert after == page.replace(new["live-speed"].strip(), changed.strip())


@pytest.mark.parametrize("text", [LIVE, FLEET, *MEASURED.values()], ids=["live", "fleet", *MEASURED])
def test_the_page_has_the_prose_of_the_generator(text: str) -> None:
    pattern = re.escape(text.strip())
    for field, any_value in {"machine": r"[^\n]+", "rounds": r"\d+", "table": r"(\|[^\n]*\n?)+"}.items():
        pattern = pattern.replace(re.escape(f"{{{field}}}"), any_value)
    assert re.search(pattern, PAGE.read_text(encoding="utf-8")), "edit bench/page.py and the page together"
