"""The documentation site builds, is whole and needs no network; a broken link or a forgotten page fails it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import evenly
from website.api import PACKAGES, public_names
from website.checks import problems_of
from website.docstrings import in_google_style
from website.stage import FRONT_PAGES, BrokenLinkError, stage

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-docs" / "bin" / "python"


@pytest.mark.full
def test_the_site_has_all_pages_and_all_public_names(tmp_path: Path) -> None:
    assert PYTHON.exists(), "`make docs` installs the tools of the site"
    site = tmp_path / "site"
    command = [str(PYTHON), "-m", "website", "--out", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert problems_of(site) == []

    sources = [ROOT / name for name in FRONT_PAGES] + list((ROOT / "docs").rglob("*.md"))
    pages = {str(source.relative_to(ROOT).with_suffix(".html")).replace("README", "index") for source in sources}
    pages |= {f"examples/{notebook.stem}.html" for notebook in (ROOT / "examples").glob("*.ipynb")}
    assert {page for page in pages if not (site / page).is_file()} == set()

    found = json.loads((site / "search.json").read_text(encoding="utf-8"))["items"]
    places = {item["location"] for item in found}
    assert pages <= {place.partition("#")[0] for place in places}
    for package in PACKAGES:
        names = set(public_names(ROOT / "src", package))
        names -= set() if package == "evenly" else set(evenly.__all__)
        page = f"docs/reference/api/{package}.html"
        assert {name for name in names if f"{page}#{package}.{name}" not in places} == set()

    assert (site / "playground" / "index.html").is_file()

    api = "docs/reference/api/evenly.html#evenly"
    for member in ("Result.spread", "Result.conf_int", "Result.to_pandas", "Stability.plot", "ExactLaw.to_dict"):
        assert f"{api}.{member}" in places, member
    text = (site / "docs/reference/api/evenly.html").read_text(encoding="utf-8")
    row = re.search(r">warmup</span></code></td>.*?</tr>", text, re.DOTALL)
    assert row, "the list of parameters in a docstring becomes a table"
    assert "time from which averages are taken" in row[0]


def checkout(folder: Path, line: str = "") -> Path:
    """Copy what the site is made of, and add a line to one of the pages."""
    for name in FRONT_PAGES:
        shutil.copy(ROOT / name, folder)
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "src").symlink_to(ROOT / "src")
    with (folder / "docs" / "tutorial.md").open("a", encoding="utf-8") as page:
        page.write(f"\n{line}\n")
    return folder


@pytest.mark.full
def test_a_link_to_a_missing_file_fails_the_build(tmp_path: Path) -> None:
    targets = ("background/nothing.md", "../src/evenly/nothing.py", "images/nothing.png", "../src", "../../x.md")
    for number, target in enumerate(targets):
        folder = tmp_path / str(number)
        folder.mkdir()
        root = checkout(folder, f"[there]({target})")
        with pytest.raises(BrokenLinkError, match=rf"docs/tutorial.md, line \d+: {re.escape(target)} is no file"):
            stage(root, folder / "work")


@pytest.mark.full
def test_a_page_outside_the_navigation_fails_the_build(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / "docs" / "guides" / "forgotten.md").write_text("# Forgotten\n", encoding="utf-8")
    with pytest.raises(BrokenLinkError, match=r"docs/guides/forgotten\.md"):
        stage(root, tmp_path / "work")


@pytest.mark.full
def test_a_link_to_a_source_file_leads_to_a_page_that_shows_it(tmp_path: Path) -> None:
    stage(checkout(tmp_path, "[the code](../src/evenly/errors.py#L1)"), tmp_path / "work")
    pages = tmp_path / "work" / "pages"
    assert "[the code](../src/evenly/errors.py.md)" in (pages / "docs/tutorial.md").read_text(encoding="utf-8")
    assert "class InputError" in (pages / "src/evenly/errors.py.md").read_text(encoding="utf-8")


@pytest.mark.full
def test_the_finished_site_is_checked(tmp_path: Path) -> None:
    rows: list[tuple[str, str | None]] = [
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js from elsewhere"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loads //example.org/x.css from elsewhere"),
        ('<a href="missing.html">x</a>', "missing.html leads nowhere"),
        ('<a href="#missing">x</a>', "#missing leads nowhere"),
        ('<a href="https://example.org/">x</a> <b id="here"></b><a href="#here">x</a>', None),
    ]
    for html, problem in rows:
        (tmp_path / "index.html").write_text(html, encoding="utf-8")
        found = problems_of(tmp_path)
        assert len(found) == (problem is not None)
        assert problem is None or problem in found[0]


@pytest.mark.full
def test_the_list_in_a_docstring_becomes_a_section() -> None:
    text = "Do it.\n\npools, load: the system,\n    as given.\nnote: no parameter.\n\nPaper: Sec. 2."
    assert in_google_style(text, "Parameters", ["pools", "load"]).splitlines() == [
        "Do it.",
        "",
        "",
        "Parameters:",
        "    pools: the system, as given.",
        "    load: the system, as given.",
        "",
        "note: no parameter.",
        "",
        "**Paper:** Sec. 2.",
    ]


def test_make_help_lists_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    targets = set(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split())
    assert {line.split()[1] for line in shown.splitlines()} == targets
