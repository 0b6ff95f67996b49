"""The checks of `tools` find what they look for: each rule is broken once."""

import pytest

from tools import check, pages
from tools.imports import find_cycle, violations


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("core.pool", "import numpy"),
        ("core.pool", "import random"),
        ("core.pool", "from time import monotonic"),
        ("core.pool", "async def f() -> None: ..."),
        ("core.pool", "from . import pool"),
        ("core.pool", "from evenly.sim.run import simulate"),
        ("sim.run", "import matplotlib.pyplot"),
        ("sim.run", "from importlib import import_module"),
        ("sim.run", "if not TYPE_CHECKING:\n    from evenly.plots import style"),
        ("sim.run", "if TYPE_CHECKING:\n    pass\nelse:\n    from evenly.plots import style"),
        ("theory.balance", "def f():\n    from evenly.theory import solve_exact"),  # defined in theory.exact
        ("theory.exact.law", "from evenly import simulate"),  # defined in sim
        ("live", "from evenly.live.picker import server"),  # its own front door may not
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert violations(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("core.pool", "from collections import deque"),
        ("sim.run", "if TYPE_CHECKING:\n    from evenly.plots import style"),
        ("sim.run", "def f():\n    from evenly.plots import style"),
        ("theory.fluid.path", "from evenly.theory import balance"),
        ("advice.alpha", "from evenly.theory import solve_exact"),
    ],
)
def test_an_import_of_the_table_is_allowed(module: str, source: str) -> None:
    assert violations(module, source) == []


def test_a_cycle_is_found() -> None:
    assert set(find_cycle({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}})) == {"a", "b", "c"}
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_a_statement_of_the_paper_without_a_row_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "LABELS", [*pages.LABELS, "Thm 7"])
    assert list(pages._wrong_rows()) == ["no row, or no longer a statement: Thm 7"]


def test_phrases_are_found_across_lines_and_in_names() -> None:
    first, second = pages.BANNED[0].split()
    text = f"fine\n# {first.title()}\n    # {second}\ndef test_{first}_{second}_pools"
    assert [line for line, _ in pages.banned_phrases(text)] == [2, 4]
    assert list(pages.banned_phrases(f"{pages.BANNED[3]}ish")) == []


def test_lines_that_can_be_wrapped_are_found() -> None:
    long = "word " * 23
    kept = (
        f"```\n{long}\n```\n| {long} |\n# {long}\n![{long}](x.png)\n- `{long}`\n[x](https://{'x' * pages.WIDTH})\n"
    )
    assert list(pages.unwrapped_lines(kept + long)) == [kept.count("\n") + 1]


def test_missing_names_and_files_are_found() -> None:
    text = "`evenly.simulate(...)` `evenly.errors.InputError` `evenly.nothing` `evenly.theory.fluid.path.nothing`"
    assert list(pages.missing_names(text, imports=False)) == ["evenly.nothing", "evenly.theory.fluid.path.nothing"]
    assert list(pages.missing_names("`evenly.theory.fluid.path.FluidPath`", imports=True)) == []
    walk = "`core/pool.py: Pool` `core/pool.py: Nothing` `core/nothing.py` `tools/imports.py`"
    assert list(pages.missing_files(walk)) == ["core/nothing.py", "core/pool.py: Nothing"]


def test_links_to_missing_headings_are_found() -> None:
    found = {
        "README.md": "# One\n[x](docs/a.md#two-words) [x](docs/a.md#one) [x](#one) [x](https://a.example/#b)",
        "docs/a.md": "## Two words\n```\n# one\n[x](#no)\n```\n## Our own: `--record`\n## Two words\n"
        "[x](../README.md#no) [x](#our-own---record) [x](#two-words_1) [x](#two-words_2)",
    }
    assert list(pages.missing_anchors(found)) == [
        ("README.md", "docs/a.md#one"),
        ("docs/a.md", "../README.md#no"),
        ("docs/a.md", "#two-words_2"),
    ]


def test_a_second_writer_of_session_counts_is_found() -> None:
    source = "self.picked = 0\npool.picked += 1\nprint(pool.unpicked)\na.pool.unpicked = b.elsewhere = 1\n"
    assert list(check.counting(source)) == [2, 4, 4]
    text = (pages.ROOT / "src" / "evenly" / "live" / check.COUNTING).read_text("utf-8")
    assert len(list(check.counting(text))) >= len(check.COUNTS)


def test_missing_targets_of_make_are_found() -> None:
    text = "`make test`, `make nothing`\nmake fuzz MINUTES=10\nmake older   # a comment\nmake sense of it"
    assert list(pages.missing_targets(text)) == ["nothing", "older"]


def test_packages_that_a_table_invents_or_leaves_out_are_found() -> None:
    page = (pages.ROOT / "docs" / "architecture.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if "`testing`" in line)
    assert list(pages.wrong_packages(page.replace(row, ""))) == ["no row for testing"]
    assert list(pages.wrong_packages(page.replace(row, row.replace("`testing`", "`sim.testing`")))) == [
        "there is no sim.testing",
        "no row for testing",
    ]
