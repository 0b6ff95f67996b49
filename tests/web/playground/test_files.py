"""The playground's files: small, and true to the map of the paper; `evenly play` serves and exports them."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from evenly.cli.main import main
from evenly.web.assets import Page
from evenly.web.bundle import exported
from tests.web.support import ROOT

MOST_BYTES = 90_000  # compressed, of the playground's own files
MOST_BYTES_IN_ALL = 150_000  # with the dashboard, the shared and the vendored files


def test_the_files_are_small() -> None:
    own = [body for path, body in Page("playground").files.items() if not re.match("web/(common|vendor)/", path)]
    assert sum(len(gzip.compress(body, 9, mtime=0)) for body in own) < MOST_BYTES
    everything = Page("playground").files | {f"{path} ": body for path, body in Page("dashboard").files.items()}
    shared = [path for path in everything if re.match("web/(common|vendor)/.* $", path)]
    total = sum(len(gzip.compress(body, 9, mtime=0)) for path, body in everything.items() if path not in shared)
    assert total < MOST_BYTES_IN_ALL


def test_statements_are_those_of_the_map_of_the_paper() -> None:
    rows = (ROOT / "docs/paper-map.md").read_text(encoding="utf-8").splitlines()
    known = {cells[1].strip(): cells[2].strip() for row in rows if len(cells := row.split("|")) == 6}
    text = (ROOT / "src/evenly/web/playground/story/statements.js").read_text(encoding="utf-8")
    shown = dict(re.findall(r'^  "([^"]+)": "([^"]+)",$', text, re.MULTILINE))
    assert shown and shown == {label: known[label] for label in shown}
    scenes = (ROOT / "src/evenly/web/playground/story/scenes.js").read_text(encoding="utf-8")
    used = {label for found in re.findall(r"labels: (\[[^\]]*\])", scenes) for label in json.loads(found)}
    assert used == set(shown)


def test_an_export_has_one_script_and_no_modules() -> None:
    files = exported(Page("playground"))
    page = files["index.html"].decode()
    assert 'type="module"' not in page and "data-worker" not in page
    for path in re.findall(r'(?:src|href)="(web/[^"]+)"', page):
        assert path in files
    script = files["web/playground.js"].decode()
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert {path for path in files if path.endswith(".js")} == {
        "web/playground.js",
        "web/vendor/uPlot.iife.min.js",
    }


def test_play_serves_until_it_is_stopped(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evenly", "play", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"The playground is at (http://127\.0\.0\.1:\d+/) \(Ctrl-C stops it\)\.\n", line)
        assert found, line
        with urllib.request.urlopen(found[1], timeout=30) as answer:
            page, headers = answer.read().decode(), dict(answer.headers)
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        script = re.search(r'src="(web/[0-9a-f]+/playground/app\.js)"', page)
        assert script
        request = urllib.request.Request(found[1] + script[1], method="HEAD")
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/javascript")
            assert "immutable" in answer.headers["Cache-Control"]
            assert answer.read() == b""
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_bad_input_ends_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    for words in (
        ["--listen", "somewhere"],
        ["--listen", "127.0.0.1:99999"],
        ["--export", ""],
        ["--export", str(tmp_path / "file")],
        ["--export", str(tmp_path / "a"), "--listen", "127.0.0.1:0"],
    ):
        assert main(["play", *words]) == 2, words
        said = capsys.readouterr()
        assert said.out == "" and re.fullmatch(r"evenly: [^\n]+\.\n", said.err), said
