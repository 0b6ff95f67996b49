"""Sections of the benchmark page can be updated one by one."""

from bench.page import LIVE, MEASURED, renewed, section


def test_updating_a_section_leaves_the_others_unchanged() -> None:
    new = {name: section(name, "a machine", 3, [f"| {name} | 1 | | |"]) for name in MEASURED}
    page = renewed("", {"live-speed": new["live-speed"], "simulator": new["simulator"]})
    assert "| live-speed |" in page
    assert "| live-balance |" not in page
    page = renewed(page, {"live-balance": new["live-balance"], "live-memory": new["live-memory"]})
    places = [page.index(f"| {name} |") for name in MEASURED]
    assert places == sorted(places)
    assert page.index(LIVE) < page.index("| live-balance |")
    changed = section("live-speed", "another machine", 3, ["| other figures | 2 | | |"])
    after = renewed(page, {"live-speed": changed})
    assert after == page.replace(new["live-speed"].strip(), changed.strip())
