"""`evenly demo` as users run it: with real Envoy, picker, pools and sessions; in a pipe and in a terminal."""

from __future__ import annotations

import os
import re
import subprocess
from urllib.request import urlopen

import pytest

from evenly.live.demo.plan import Plan
from tests.live.demo_process import PATIENCE, check_all_gone, check_ctrl_c, demo, descendants, eventually
from tests.tiers import rest_in_full

SHORT, LONG = 9.0, 18.0  # seconds


def is_complete(family: dict[int, str]) -> bool:
    commands = list(family.values())
    return (
        any("evenly.live.demo.pools" in command for command in commands)
        and any("evenly picker" in command for command in commands)
        and sum("envoy" in command.partition(" ")[0] for command in commands) == 2
    )


@pytest.mark.long
@pytest.mark.parametrize("seconds", rest_in_full([SHORT, LONG], 1))
def test_the_demo_in_a_pipe(seconds: float) -> None:
    """Too short to settle, but every session counts, and Envoys that do not share their counts are less even."""
    with demo("--seconds", str(seconds), "--seed", "3", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        eventually(lambda: is_complete(descendants(process.pid)) or process.poll() is not None)
        family = descendants(process.pid)
        assert process.stdout is not None
        begin = os.read(process.stdout.fileno(), 2**16)
        named = re.match(rb"dashboard (http://127\.0\.0\.1:\d+/)\n", begin)
        assert named, begin
        with urlopen(named[1].decode(), timeout=PATIENCE) as page:
            assert b"<title>evenly</title>" in page.read()
        rest, complaints = process.communicate(timeout=PATIENCE)
    out = (begin + rest).decode()
    assert (process.returncode, complaints) == (0, b"")
    check_all_gone(family)
    lines = out.splitlines()
    _, heading, *moments = lines[: lines.index("")]
    _, _, titles, *rows = lines[lines.index("") + 1 :]
    assert "2 Envoys over 20 pools" in heading
    assert "least_request with selection_method FULL_SCAN" in heading
    assert moments
    assert all(re.match(r" *\d+ s  load +[\d.]+  threshold", moment) for moment in moments)
    assert titles.split()[:3] == ["load", "threshold", "best"]
    figures = [[float(word) for word in row.split()] for row in rows[:3]]
    assert [row[0] for row in figures] == [5.5, 10.5, 2.5]
    if seconds == LONG:  # a few seconds per load only allow a weak claim: overall, evenly is more even
        assert sum(row[3] for row in figures) < sum(row[5] for row in figures)
    visits = len(Plan(seconds, 3).visits())
    assert f"None of {2 * visits:,} sessions failed." in " ".join(out.split())


@pytest.mark.full
def test_the_demo_in_a_terminal_ends_cleanly_by_ctrl_c() -> None:
    check_ctrl_c(shown=b"learned threshold", is_complete=is_complete)
