"""Gather the pages of the site in one folder.

The folder has the layout of the repository, so links between Markdown files work as they are, on the site and on a
code host. Links to other files (a notebook, a source file) get a page that shows the file.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

from website import api
from website.notebooks import write_notebook

HERE = Path(__file__).parent
FRONT_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")
NOTEBOOKS = "examples"
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^\s*(```|~~~)")
_SHOWN_AS_IS = {".md", ".png", ".svg", ".jpg", ".gif"}
_LANGUAGES = {".py": "python", ".pyi": "python", ".toml": "toml", ".json": "json", ".yml": "yaml"}


class BrokenLinkError(Exception):
    """A link that leads nowhere, or a page that the navigation does not list."""


def stage(root: Path, work: Path) -> None:
    """Write the configuration of the site to `work`, and its pages to the folder `pages` there."""
    pages = work / "pages"
    shutil.copytree(root / "docs", pages / "docs")
    for name in FRONT_PAGES:
        shutil.copy(root / name, pages / name)
    shutil.copytree(HERE / "assets", pages / "assets")
    shutil.copy(HERE / "zensical.toml", work)
    (work / "src").symlink_to(root / "src")
    for notebook in sorted((root / NOTEBOOKS).glob("*.ipynb")):
        write_notebook(notebook, pages / NOTEBOOKS)
    api.write_pages(root / "src", pages / "docs" / "reference" / "api")
    _check_navigation(work / "zensical.toml", pages)
    for page in sorted(pages.rglob("*.md")):
        _lead_links_to_pages(page, pages, root)


def _check_navigation(config: Path, pages: Path) -> None:
    listed = set(_paths(tomllib.loads(config.read_text(encoding="utf-8"))["project"]["nav"]))
    present = {page.relative_to(pages).as_posix() for page in pages.rglob("*.md")}
    if missing := sorted(present - listed):
        raise BrokenLinkError(f"website/zensical.toml must list these pages in nav: {', '.join(missing)}.")
    if extra := sorted(listed - present):
        raise BrokenLinkError(f"website/zensical.toml lists pages that do not exist: {', '.join(extra)}.")


def _paths(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
            yield from _paths(part)


def _lead_links_to_pages(page: Path, pages: Path, root: Path) -> None:
    """Point links to files that are not pages to a page that shows the file, which is written here."""

    def lead(match: re.Match[str]) -> str:
        link, anchor = match[1], match[2] or ""
        if "://" in link or link.startswith("mailto:"):
            return match[0]
        target = Path(os.path.normpath(page.parent / link))
        if target.suffix in _SHOWN_AS_IS and target.is_file():
            return match[0]
        file = root / target.relative_to(pages) if target.is_relative_to(pages) else None
        if file is None or not file.is_file():
            raise BrokenLinkError(f"{page.relative_to(pages)}, line {number}: {link} is no file.")
        if target.suffix == ".ipynb":
            return f"{link.removesuffix('.ipynb')}.md{anchor}"
        _write_source_page(file, target.with_name(f"{target.name}.md"), str(target.relative_to(pages)))
        return f"{link}.md"  # a line number on a code host is no anchor here

    lines, inside = page.read_text(encoding="utf-8").splitlines(), False
    for number, line in enumerate(lines, 1):
        inside ^= bool(_FENCE.match(line))
        if not inside:
            lines[number - 1] = _LINK.sub(lead, line)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_source_page(file: Path, page: Path, title: str) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    text = file.read_text(encoding="utf-8").rstrip()
    fence = "`" * 4
    page.write_text(
        f"# {title}\n\n{fence}{_LANGUAGES.get(file.suffix, 'text')}\n{text}\n{fence}\n", encoding="utf-8"
    )
