"""Standard streams that are closed or full."""

import json
import subprocess
import sys

import pytest

COMMAND = f"{sys.executable} -m evenly equilibrium --load 2.5 --threshold 2 --json"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("closed", [">&-", ">&- <&-"])
def test_a_closed_stdout_is_rejected_before_any_work(closed: str) -> None:
    outcome = shell(f"{COMMAND} {closed}")
    assert outcome.returncode == 2
    assert outcome.stderr == "evenly: stdout is closed: redirect it to a file or to /dev/null.\n"


def test_with_all_streams_closed_only_the_exit_code_is_left() -> None:
    outcome = shell(f"{COMMAND} >&- 2>&- <&-")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (2, "", "")


@pytest.mark.parametrize("closed", ["2>&-", "<&-"])
def test_a_closed_stderr_or_stdin_does_no_harm(closed: str) -> None:
    outcome = shell(f"{COMMAND} {closed}")
    assert outcome.returncode == 0
    assert json.loads(outcome.stdout)["load"] == 2.5


def test_a_bad_value_with_a_closed_stderr_still_exits_with_2() -> None:
    assert shell(f"{COMMAND} --load x 2>&-").returncode == 2


SIMULATE = "simulate --pools 3 --load 1 --horizon 5"


@pytest.mark.parametrize("command", ["--help", "--version", SIMULATE, f"{SIMULATE} --json", "gateway --help"])
def test_a_full_disk_is_named(command: str) -> None:
    """Output this short waits in Python's buffer until the end, unless Python is told not to buffer."""
    outcome = shell(f"env -u PYTHONUNBUFFERED {sys.executable} -m evenly {command} > /dev/full")
    assert outcome.stderr == "evenly: Cannot write the output: No space left on device.\n"
    assert outcome.returncode == 1


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    outcome = shell(f"env -u PYTHONUNBUFFERED {COMMAND} | true")
    assert (outcome.returncode, outcome.stderr) == (0, "")


INTERRUPTED_IN_C = """
import os, signal, sys
import evenly.cli.main
from evenly.__main__ import run

def main(arguments):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    except KeyboardInterrupt:
        raise ValueError("Invalid affine transformation matrix") from None

signal.signal(signal.SIGINT, signal.default_int_handler)
evenly.cli.main.main = main
sys.argv = ["evenly", "paper"]
run()
"""


def test_ctrl_c_that_a_library_turns_into_another_error_is_still_ctrl_c() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IN_C], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")
