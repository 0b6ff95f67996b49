"""The examples in the documentation run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.live.processes import free_port
from tests.needs import needs
from tools.programs import PACKAGES

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
FIRST = {"docs/guides/websocket-servers.md", "docs/guides/direct-sessions.md"}  # in `make test`
# Long commands of several pages, and the one place that runs each.
RUN_ELSEWHERE = {
    "evenly paper --quick": "tests/paper/test_paper.py",
    "evenly tune --pools 20 --load-max 5.5": "docs/guides/predictions.md, with a picture",
}
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


def tiered(page: Path) -> ParameterSet:
    return pytest.param(page, id=named(page), marks=pytest.mark.long if named(page) in FIRST else pytest.mark.full)


@pytest.mark.parametrize("page", [tiered(page) for page in PAGES if blocks(page)])
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
            lines = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
            commands = [["bash", "-c", line] for line in lines if line not in RUN_ELSEWHERE]
            ran += len(lines) - len(commands)
        else:
            assert language == "sh", "only the two commands of the front page are not run"
            continue
        for program in PACKAGES:
            if any(re.search(rf"(?<![\w/-]){re.escape(program)} ", command[-1]) for command in commands):
                needs(program)
        for command in commands:
            done = subprocess.run(
                command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
            )
            assert done.returncode == 0, f"{command[-1]}\n{done.stderr}"
            output += done.stdout
            ran += 1
    assert ran > 0 or page.name == "README.md"
