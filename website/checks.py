"""Checks of the finished site: every link leads somewhere, and nothing is loaded from another machine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"script", "link", "img", "iframe", "source", "video", "audio", "embed", "object"}
_STYLE_URL = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')]+)""")


@dataclass
class Page(HTMLParser):
    """The anchors, the links and the loaded files of one page."""

    text: str
    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names and where it points."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        targets = {values[name] for name in ("href", "src", "data") if name in values}
        if tag in _LOADS:
            self.loaded |= targets
        elif tag == "a":
            self.links |= targets


def problems_of(site: Path) -> list[str]:
    """Return one line per broken link and per file that a page loads from elsewhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        if path.name == "404.html":  # only a web server shows it, at any address
            continue
        name = path.relative_to(site)
        problems += [
            f"{name} loads {target} from elsewhere" for target in sorted(page.loaded) if _is_remote(target)
        ]
        for target in sorted(page.links | page.loaded):
            if not _is_remote(target) and not _leads_somewhere(target, path, pages):
                problems.append(f"{name}: {target} leads nowhere")
    for sheet in sorted(site.rglob("*.css")):
        found = _STYLE_URL.findall(sheet.read_text(encoding="utf-8"))
        problems += [f"{sheet.relative_to(site)} loads {target} from elsewhere" for target in found]
    return problems


def _is_remote(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme not in {"", "data"}


def _leads_somewhere(target: str, path: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme == "data":
        return True
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if file.is_dir():
        file /= "index.html"
    if not file.is_file():
        return False
    return not parts.fragment or file not in pages or unquote(parts.fragment) in pages[file].anchors
