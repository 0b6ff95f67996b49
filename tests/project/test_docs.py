"""The examples in the documentation run."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.live.processes import free_port
from tests.needs import needs
from tools.programs import PACKAGES

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
FIRST = {"README.md", "docs/guides/websocket-servers.md", "docs/guides/direct-sessions.md"}  # in `make test`
# Long commands of several pages, and the one place that runs each.
RUN_ELSEWHERE = {
    "evenly paper --quick": "tests/paper/test_paper.py",
    "evenly paper fig6": "docs/tutorial-paper.md",  # into a folder
    "evenly tune --pools 20 --load-max 5.5": "docs/tutorial.md",  # with a picture
    "evenly tune --pools 20 --load-max 5.5 --plot tradeoff.png": "docs/tutorial.md",
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"(?:#|//) ([\w-]+\.(?:conf|hcl|toml|py|mjs|yaml))\n")  # a comment
PORT = re.compile(r"\b[89]\d{3}\b")


# Runs its arguments as programs, one after the other, and prints a zero after the output of each.
SESSION = """
import sys
for text in sys.argv[1:]:
    exec(compile(text, "<example>", "exec"), {"__name__": "__main__"})
    print(end="\\0", flush=True)
"""


@dataclass(frozen=True)
class Block:
    """A block of a page, and what it prints, if the page says so. A file has its name in the first line."""

    language: str
    text: str
    prints: str | None


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "text":
            found[-1] = replace(found[-1], prints=text)
        else:
            found.append(Block("file" if FILE.match(text) else language, text, None))
    return found


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
    marks = [pytest.mark.long] if named(page) in FIRST else [pytest.mark.long, pytest.mark.full]
    return pytest.param(page, id=named(page), marks=marks)


@pytest.mark.parametrize("page", [tiered(page) for page in PAGES if blocks(page)])
def test_examples_run_as_printed(page: Path, tmp_path: Path) -> None:
    """Run the blocks in order in one empty folder. Only the ports differ, which another program may use."""
    ports: dict[str, str] = {}
    for language, group in groupby(blocks(page), key=lambda block: block.language):
        found = list(group)
        texts = [with_free_ports(block.text, ports) for block in found]
        if language == "python":  # in one process: to import what they use takes longer than most of them run
            outputs = run([sys.executable, "-c", SESSION, *texts], tmp_path).split("\0")[:-1]
        elif language == "console":
            outputs = [run_lines(page, text, tmp_path) for text in texts]
        else:
            assert language in {"file", "sh"}, "only the two commands of the front page are not run"
            outputs = [""] * len(texts)
            for text in texts if language == "file" else ():
                (tmp_path / FILE.findall(text)[0]).write_text(text, encoding="utf-8")
        for block, output in zip(found, outputs, strict=True):
            assert block.prints in (None, output), block.text


def run_lines(page: Path, text: str, folder: Path) -> str:
    lines = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    assert lines, text
    here = named(page)
    return "".join(run(["bash", "-c", line], folder) for line in lines if RUN_ELSEWHERE.get(line, here) == here)


def run(command: list[str], folder: Path) -> str:
    for program in PACKAGES:
        if re.search(rf"(?<![\w/-]){re.escape(program)} ", command[-1]):
            needs(program)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "EVENLY_CHECKOUT": str(ROOT)}
    environment["XDG_STATE_HOME"] = str(folder / "state")  # gateways of other pages have the same addresses
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout
