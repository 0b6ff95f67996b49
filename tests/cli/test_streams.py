"""Standard streams that are closed or full."""

import json
import os
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


FAILING = """
import socket, subprocess
import evenly.cli.main
from evenly.__main__ import run

def main(arguments):
    {}

evenly.cli.main.main = main
run()
"""


def failing(statement: str) -> subprocess.CompletedProcess[str]:
    script = FAILING.format(statement)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_an_error_of_a_file_names_the_file() -> None:
    """Nothing is wrong with the output: an exec was denied."""
    done = failing('subprocess.run(["/dev/null"])')
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "evenly: Permission denied: '/dev/null'.\n")


@pytest.mark.parametrize(
    "bug",
    ['socket.create_connection(("127.0.0.1", 0))', 'raise OSError("of our own")', "raise BlockingIOError(11)"],
)
def test_an_error_that_is_a_bug_shows_where(bug: str) -> None:
    done = failing(bug)
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "Cannot write" not in done.stderr


def test_a_stream_that_would_block_cannot_be_written() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with os.fdopen(reader, "rb"), os.fdopen(writer, "wb", buffering=0) as pipe:
        while pipe.write(bytes(4096)):  # None once it is full
            pass
        command = ["env", "-u", "PYTHONUNBUFFERED", sys.executable, "-m", "evenly", "--help"]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("evenly: Cannot write the output: ")
    assert done.stderr.count("\n") == 1


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
