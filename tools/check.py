"""Check what no linter knows: imports between packages, pages, releases, the one writer of session counts.

python -m tools.check    print one line per problem; part of `make check`
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator

from tools import imports, pages
from tools.pages import ROOT

COUNTS = ("picked", "unpicked", "elsewhere")  # of LivePool
COUNTING = "balancer/rotation.py"


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


def count_problems() -> Iterator[str]:
    """Yield the modules but one that write the session counts of a pool: a second writer would miscount."""
    live = ROOT / "src" / "evenly" / "live"
    for path in sorted(live.rglob("*.py")):
        name = path.relative_to(live).as_posix()
        if name != COUNTING and not name.startswith("demo/"):  # the demo has tallies of its own
            yield from (
                f"live/{name}:{line}: only {COUNTING} counts" for line in counting(path.read_text("utf-8"))
            )


def counting(source: str) -> Iterator[int]:
    """Yield the lines that write session counts of an object other than `self`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in COUNTS and not isinstance(node.ctx, ast.Load):
            own = isinstance(node.value, ast.Name) and node.value.id == "self"
            yield from () if own else (node.lineno,)


def main() -> int:
    """Print all problems and return the exit code."""
    found = [*imports.problems(), *pages.problems(), *release_problems(), *count_problems()]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
