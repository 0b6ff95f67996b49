"""The examples in the documentation run, and its links work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.processes import free_port

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:#|//) ([\w-]+\.(?:conf|hcl|toml|py|mjs|yaml))\n")  # a comment
PORT = re.compile(r"\b[89]\d{3}\b")


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def _port(printed: str, ports: dict[str, str]) -> str:
    if printed not in ports:
        ports[printed] = str(free_port())
    return ports[printed]


def with_free_ports(text: str, ports: dict[str, str]) -> str:
    """Replace each port that a guide names by one that is free here, always by the same one."""
    return PORT.sub(lambda match: _port(match[0], ports), text)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_examples_run_as_printed(page: Path, tmp_path: Path) -> None:
    """Run the blocks in order in one empty folder. A block whose first line is the name of a file becomes it.

    Only the ports differ from what is printed: another program may use those. A `text` block is what the block
    before it prints.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "EVENLY_CHECKOUT": str(ROOT)}
    ran, ports, output = 0, dict[str, str](), ""
    for language, printed in blocks(page):
        if language == "text":
            assert output == printed
            continue
        text, output = with_free_ports(printed, ports), ""
        if named_file := FILE.match(text):
            (tmp_path / named_file[1]).write_text(text, encoding="utf-8")
            continue
        if language == "python":
            commands = [[sys.executable, "-c", text]]
        elif language == "console":
            commands = [
                ["bash", "-c", line.removeprefix("$ ")] for line in text.splitlines() if line.startswith("$ ")
            ]
        else:
            assert language == "sh", "only the two commands of the front page are not run"
            continue
        for command in commands:
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
            )
            assert done.returncode == 0, f"{command[-1]}\n{done.stderr}"
            output += done.stdout
            ran += 1
    assert ran > 0 or page.name == "README.md"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_have_targets(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_the_front_page_has_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in text
        assert f"\n{target}:" in makefile
