"""Bad input: one sentence on stderr, exit code 2, nothing written. Ctrl-C: 130, nothing written."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run

SIMULATE = ("simulate", "--pools", 5, "--load", 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("simulate", "--pools", 5, "--load", -1), ["load", "-1"]),
        (("simulate", "--pools", 5, "--load", "much"), ["--load", "much"]),
        (("simulate", "--pools", 5), ["load", "schedule"]),
        (("simulate", "--load", 5), ["--pools"]),
        ((*SIMULATE, "--alpha", "1.2"), ["alpha", "1.2"]),
        ((*SIMULATE, "--horizon", 10, "--warmup", 11), ["warm-up", "horizon 10", "11"]),
        ((*SIMULATE, "--policy", "power-of-d", "--choices", 6), ["--sample-size must be", "not 6", "5"]),
        ((*SIMULATE, "--initial", "nan"), ["--initial-tasks must be", "not nan"]),
        ((*SIMULATE, "--service-rate", "9" * 32), ["events", "1e+15", "Reduce"]),
        ((*SIMULATE, "--service-rate", "1e-320"), ["--service-rate must be", "1e-100", "not 1e-320"]),
        ((*SIMULATE, "--seed", "9" * 5000), ["--seed", "must be a whole number"]),
        ((*SIMULATE, "--replications", 10**5, "--initial", 10**6, "--horizon", 1), ["levels", "25000000"]),
        ((*SIMULATE, "--scenario", "/dev/zero"), ["Cannot read /dev/zero", "more than 1000000 bytes"]),
        ((*SIMULATE, "--plot", "x" * 5000 + ".png"), ["Cannot write", "name too long"]),
        ((*SIMULATE, "--policy", "nearest"), ["policy", "nearest", "jsq"]),
        ((*SIMULATE, "--capacity", 2, "--threshold", 2), ["threshold", "capacity 2"]),
        ((*SIMULATE, "--replications", 0), ["replications", "0"]),
        ((*SIMULATE, "--schedule", "0:1"), ["load or a schedule"]),
        (("simulate", "--pools", 5, "--schedule", "0:1,x"), ["schedule", "'x'"]),
        (
            ("simulate", "--pools", 5, "--schedule", "0:1,2:3", "--steady-state"),
            ["needs a constant load", "schedule"],
        ),
        ((*SIMULATE, "--plot", "picture.gif"), ["plot", ".png", "picture.gif"]),
        ((*SIMULATE, "--save", "run.csv"), ["save", ".npz", "run.csv"]),
        ((*SIMULATE, "--colour", "red"), ["--colour"]),
        (("simulte",), ["simulte"]),
        (("compare", "--pools", 5, "--load", 1, "--policies", "jsq,best"), ["policy", "best"]),
        (("compare", "--pools", 5, "--load", 1, "--policies", "jsq,jsq"), ["each policy once", "'jsq' twice"]),
        (("exact", "--pools", 3), ["--pools and --load"]),
        (("exact", "--pools", 3, "--load", 1, "--max-states", 5), ["at least", "--max-states (5)"]),
        (("exact", "--policy", "pull", "--pools", 3, "--load", 1), ["policy", "pull"]),
    ],
    ids=lambda value: " ".join(map(str, value))[:60] if isinstance(value, tuple) else "",
)
def test_bad_input_gets_one_sentence(run: Run, arguments: tuple[object, ...], words: list[str]) -> None:
    outcome = run(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("evenly: ")
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err


@pytest.mark.parametrize("option", ["--plot", "--save"])
def test_a_directory_that_is_not_there_is_found_before_the_work(run: Run, tmp_path: Path, option: str) -> None:
    target = tmp_path / "missing" / ("x.png" if option == "--plot" else "x.npz")
    outcome = run("simulate", "--pools", 10**6, "--load", 10, "--horizon", 10**6, option, target)
    assert outcome.code == 2
    assert "there is no directory" in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_no_arguments_show_the_help(run: Run) -> None:
    assert "simulate" in run("--help").out
    bare = run()
    assert bare.code == 2
    assert "simulate" in bare.out + bare.err


def test_version(run: Run) -> None:
    assert run("--version").out.startswith("evenly 0.")


def test_a_full_disk_behind_stdout_gives_one_sentence() -> None:
    command = [sys.executable, "-m", "evenly", "exact", "--pools", "2", "--load", "1", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Cannot write the output" in done.stderr


def test_a_terminal_without_unicode_gets_replacements() -> None:
    command = [sys.executable, "-m", "evenly", "compare", "--pools", "5", "--load", "2", "--horizon", "250"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0
    assert b"threshold" in done.stdout


def test_ctrl_c_stops_a_long_run_and_leaves_nothing(tmp_path: Path) -> None:
    """Use a real terminal: the progress bar appears after a second, then the interrupt is sent."""
    master, slave = pty.openpty()
    command = [
        # A test run in the background of a shell ignores the interrupt, and so would its children.
        "env", "--default-signal=INT", sys.executable, "-m", "evenly", "simulate", "--pools", "500",
        "--load", "10.5", "--alpha", "0.97", "--horizon", "1e8",
        "--plot", str(tmp_path / "x.png"), "--save", str(tmp_path / "x.npz"),
    ]  # fmt: skip
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=environment, cwd=tmp_path)
    os.close(slave)
    seen = b""
    deadline = time.monotonic() + 60
    while b"simulating" not in seen and time.monotonic() < deadline:
        seen += os.read(master, 4096)
    assert b"simulating" in seen
    process.send_signal(signal.SIGINT)
    rest = b""
    while True:
        try:
            chunk = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        rest += chunk
    assert process.wait(timeout=30) == 130
    assert process.stdout is not None
    assert process.stdout.read() == b""
    process.stdout.close()
    os.close(master)
    assert b"Stopped." in rest
    assert b"Traceback" not in seen + rest
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_exec_of_a_string_ends_like_any_interrupt(tmp_path: Path) -> None:
    """Libraries run such strings. Under `python -m`, CPython then dies of the signal even if it was caught."""
    source = "import evenly.cli.main as cli\nfrom evenly.__main__ import run\n"
    source += "cli.main = lambda arguments: exec('raise KeyboardInterrupt')\nrun()\n"
    (tmp_path / "interrupted.py").write_text(source)
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")
