"""The code and the tests of each statement of the paper, read from docs/paper-map.md."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_CHECKOUT = _PACKAGE.parents[1]
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Reference:
    """A row of the map: a statement's label, its content, and the names of its code and tests."""

    label: str
    says: str
    code: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """The label as an HTML anchor."""
        return "map-" + "-".join(re.findall(r"[a-z0-9]+", self.label.lower()))


def references() -> dict[str, Reference]:
    """Return the rows by label. The map is in docs/ of a checkout, and inside the package once it is built."""
    packaged = Path(__file__).with_name("paper-map.md")
    file = packaged if packaged.exists() else _CHECKOUT / "docs" / "paper-map.md"
    found = {}
    for label, says, code, tests in _ROW.findall(file.read_text(encoding="utf-8")):
        names, checks = (tuple(re.findall(r"`([^`]+)`", cell)) for cell in (code, tests))
        if names or checks:
            found[label.strip()] = Reference(label.strip(), says.strip(), names, checks)
    return found


def link_to_code(name: str, folder: Path) -> str | None:
    """Return the relative path from a folder to the file of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            spec = find_spec(".".join(parts[:cut]))
        except ModuleNotFoundError:  # its parent is a module, not a package
            continue
        if spec is not None and spec.origin is not None:
            return _way(Path(spec.origin), folder)
    return None


def link_to_test(name: str, folder: Path) -> str | None:
    """Return the relative path from a folder to a test's file, or None where the tests are not installed."""
    file = _CHECKOUT / "tests" / name.partition("::")[0]
    return _way(file, folder) if file.exists() else None


def _way(file: Path, folder: Path) -> str | None:
    try:
        return Path(os.path.relpath(file, folder.resolve())).as_posix()
    except ValueError:  # another drive
        return None
