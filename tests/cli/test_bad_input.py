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
        (("simulate", "--pools", 5, "--load", "nan"), ["load", "nan"]),
        (("simulate", "--pools", 5, "--load", "much"), ["--load", "much"]),
        (("simulate", "--pools", 0, "--load", 1), ["pools", "0"]),
        (("simulate", "--pools", 5), ["load", "schedule"]),
        (("simulate", "--load", 5), ["--pools"]),
        ((*SIMULATE, "--alpha", 0), ["alpha", "between 0 and 1", "0"]),
        ((*SIMULATE, "--alpha", 1), ["alpha", "between 0 and 1", "1"]),
        ((*SIMULATE, "--alpha", "1.2"), ["alpha", "1.2"]),
        ((*SIMULATE, "--alpha", "x"), ["alpha", "x"]),
        ((*SIMULATE, "--alpha", "1e-999999999"), ["alpha", "decimal places"]),
        ((*SIMULATE, "--horizon", 10, "--warmup", 11), ["warm-up", "horizon 10", "11"]),
        ((*SIMULATE, "--horizon", 10, "--warmup", 10), ["warm-up"]),
        ((*SIMULATE, "--horizon", 0), ["horizon"]),
        ((*SIMULATE, "--policy", "power-of-d", "--choices", 6), ["--sample-size must be", "not 6", "5"]),
        ((*SIMULATE, "--initial", "nan"), ["--initial-tasks must be", "not nan"]),
        ((*SIMULATE, "--service-rate", "9" * 32), ["events", "1e+15", "Reduce"]),
        ((*SIMULATE, "--service-rate", "9" * 400), ["--service-rate", "1e+100", "not inf"]),
        ((*SIMULATE, "--service-rate", "1e-320"), ["--service-rate must be", "1e-100", "not 1e-320"]),
        ((*SIMULATE, "--horizon", "1e300"), ["--horizon must be", "not 1e+300"]),
        ((*SIMULATE, "--horizon", "1e99"), ["events", "1e+15"]),
        ((*SIMULATE, "--seed", "9" * 60), ["--seed must be", "not 999"]),
        ((*SIMULATE, "--seed", "9" * 5000), ["--seed", "must be a whole number"]),
        ((*SIMULATE, "--replications", 10**5, "--initial", 10**6, "--horizon", 1), ["levels", "25000000"]),
        ((*SIMULATE, "--scenario", "/dev/zero"), ["Cannot read /dev/zero", "more than 1000000 bytes"]),
        ((*SIMULATE, "--scenario", "a\nb"), ["Cannot read 'a\\nb'"]),
        ((*SIMULATE, "--scenario", "x" * 5000), ["Cannot read", "name too long"]),
        ((*SIMULATE, "--plot", "x" * 5000 + ".png"), ["Cannot write", "name too long"]),
        ((*SIMULATE, "--policy", "nearest"), ["policy", "nearest", "jsq"]),
        ((*SIMULATE, "--policy", "pull"), ["pull", "capacity"]),
        ((*SIMULATE, "--capacity", 2, "--threshold", 2), ["threshold", "capacity 2"]),
        ((*SIMULATE, "--threshold", -1), ["threshold", "-1"]),
        ((*SIMULATE, "--initial", -1), ["initial", "-1"]),
        ((*SIMULATE, "--replications", 0), ["replications", "0"]),
        ((*SIMULATE, "--seed", -1), ["seed", "-1"]),
        ((*SIMULATE, "--schedule", "0:1"), ["load or a schedule"]),
        (("simulate", "--pools", 5, "--schedule", "0:1,x"), ["schedule", "'x'"]),
        (("simulate", "--pools", 5, "--schedule", "1:1"), ["begin at time 0"]),
        (
            ("simulate", "--pools", 5, "--schedule", "0:1,2:3", "--steady-state"),
            ["needs a constant load", "schedule"],
        ),
        ((*SIMULATE, "--plot", "picture.gif"), ["plot", ".png", "picture.gif"]),
        ((*SIMULATE, "--save", "run.csv"), ["save", ".npz", "run.csv"]),
        ((*SIMULATE, "--colour", "red"), ["--colour"]),
        (("simulte",), ["simulte"]),
        (("compare", "--pools", 5, "--load", 1, "--policies", "jsq,best"), ["policy", "best"]),
        (("compare", "--pools", 5, "--load", 1, "--policies", ","), ["none of them empty"]),
        (("compare", "--pools", 5, "--load", 1, "--policies", "jsq,jsq"), ["each policy once", "'jsq' twice"]),
        (("exact", "--pools", 3), ["--pools and --load"]),
        (("exact", "--pools", 3, "--load", -1), ["load", "-1"]),
        (("exact", "--pools", 100, "--load", 50), ["states"]),
        (("exact", "--pools", 3, "--load", 1, "--max-states", 5), ["at least", "--max-states (5)"]),
        (("exact", "--pools", 3, "--load", 1, "--max-states", 10**9), ["--max-states", "from 1 to 1000000"]),
        (("exact", "--pools", 2, "--load", 1.5, "--threshold", 2**63 - 1), ["threshold", "from 0 to 1000000"]),
        (("exact", "--pools", 2, "--load", 5e-324), ["load must be at least 1e-300", "5e-324"]),
        (("fluid", "--load", 2.5, "--horizon", "1e-308"), ["horizon", "from 1e-12"]),
        (("exact", "--policy", "pull", "--pools", 3, "--load", 1), ["policy", "pull"]),
        (("exact", "--pools", 3, "--load", 1, "--alpha", "1e-999999999"), ["alpha", "decimal places"]),
        (("exact", "--pools", 3, "--load", 1, "--plot", "x.gif"), ["plot", "x.gif"]),
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


@pytest.mark.slow
def test_a_full_disk_behind_stdout_gives_one_sentence() -> None:
    command = [sys.executable, "-m", "evenly", "exact", "--pools", "2", "--load", "1", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Cannot write the output" in done.stderr


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_replacements() -> None:
    command = [sys.executable, "-m", "evenly", "compare", "--pools", "5", "--load", "2", "--horizon", "250"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0
    assert b"threshold" in done.stdout


@pytest.mark.slow
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
