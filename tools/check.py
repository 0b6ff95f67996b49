"""Check what no linter knows: imports between packages, pages, releases.

python -m tools.check    print one line per problem; part of `make check`
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator

from tools import imports, pages
from tools.pages import ROOT


def release_problems() -> Iterator[str]:
    """Yield places that name another version, and pins without a hash or with the address of a package index."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    for name, words in {
        "src/evenly/__init__.py": f'__version__ = "{version}"',
        "CHANGELOG.md": f"## [{version}]",
        "CITATION.cff": f"version: {version}",
    }.items():
        if words not in (ROOT / name).read_text("utf-8"):
            yield f"{name}: it must say {words}"
    for file in sorted((ROOT / "requirements").glob("*.txt")):
        pins = re.findall(r"^[a-z0-9].*(?:\n .*)*", file.read_text("utf-8"), re.MULTILINE)
        yield from (
            f"{file.name}: no hash: {pin.split()[0]}" for pin in pins if "==" not in pin or "--hash" not in pin
        )
        if "://" in file.read_text("utf-8"):
            yield f"{file.name}: it names a host"


def main() -> int:
    """Print all problems and return the exit code."""
    found = [*imports.problems(), *pages.problems(), *release_problems()]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
