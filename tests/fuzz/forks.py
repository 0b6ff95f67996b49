"""Running one command line in a forked child, under limits, and judging what it did.

A fork of a process that has imported everything starts in milliseconds: thousands of invocations are affordable.
The limit is on processor time: a busy machine delays a command but does not make it hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.attacks import STOPPED_BY
from tests.fuzz.values import prepare_folder

CPU_S = 60  # what takes a second or two here: other processors are slower, and a busy one shares its caches
MEMORY = 10**9  # bytes
_WALL_S = 300.0  # far beyond CPU_S, for commands that wait instead of computing
_SERVE_S = 2.0  # how long a command that would run on may run before it is told to stop
_POLL_S = 0.01
_CRASHED = 70
_ESTIMATE = re.compile(r"\b(about|roughly) .* (seconds|minutes|hours|days|years)\b")
_NOISE = re.compile(r"Traceback|Warning|Exception ignored|free\(\)|Segmentation|Fatal Python|leaked")


@dataclass(frozen=True)
class Outcome:
    """What one invocation did. `code` is negative for a signal; `verdict` is empty if all is well."""

    arguments: list[str]
    code: int
    out: str
    err: str
    seconds: float  # of processor time
    memory: int  # bytes, at the peak
    verdict: str


def run_once(arguments: list[str]) -> Outcome:
    """Run `evenly` with these arguments in a fork and judge the outcome."""
    folder = Path(tempfile.mkdtemp(prefix="evenly-fuzz-"))
    try:
        work = folder / "work"
        work.mkdir()
        prepare_folder(work)
        child = os.fork()
        if child == 0:
            _become(arguments, folder, work)
        return _watch(child, arguments, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _become(arguments: list[str], folder: Path, work: Path) -> None:
    """Turn this forked child into the command. Never returns."""
    code = _CRASHED
    try:
        os.setsid()
        os.chdir(work)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits it ignored
        for number, name, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, "out", os.O_WRONLY),
            (2, "err", os.O_WRONLY),
        ):
            handle = os.open(folder / name, flags | os.O_CREAT, 0o600)
            os.dup2(handle, number)
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, 2 * CPU_S + 2))
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8") for number, mode in ((0, "r"), (1, "w"), (2, "w"))
        )
        sys.argv = ["evenly", *arguments]
        from evenly.__main__ import run

        try:
            run()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does: waits for threads
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _watch(child: int, arguments: list[str], folder: Path) -> Outcome:
    """Wait for the child; stop a server, interrupt a run that announced its length, kill what breaks a limit."""
    begin = time.monotonic()
    sent = 0
    broken = ""
    peak = 0
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            break
        peak = max(peak, _memory(child))
        elapsed = time.monotonic() - begin
        if peak > MEMORY or elapsed > _WALL_S:
            broken = "memory" if peak > MEMORY else "hang"
            os.killpg(child, signal.SIGKILL)
        elif not sent and arguments[0] in STOPPED_BY and elapsed > _SERVE_S:
            sent = STOPPED_BY[arguments[0]]
            os.kill(child, sent)
        elif not sent and elapsed > 0.5 and _ESTIMATE.search(_read(folder / "err")):
            sent = signal.SIGINT
            resource.prlimit(child, resource.RLIMIT_CPU, (2 * CPU_S, 2 * CPU_S + 2))  # time to stop
            os.kill(child, sent)
        time.sleep(_POLL_S)
    left = _left_behind(child)
    code = os.waitstatus_to_exitcode(status)
    out, err = _read(folder / "out"), _read(folder / "err")
    peak = max(peak, usage.ru_maxrss * 1024)
    verdict = broken or judge(arguments, code, out, err, sent)
    verdict = verdict or ("memory" if peak > MEMORY else "") or ("processes left behind" if left else "")
    return Outcome(arguments, code, out, err, usage.ru_utime + usage.ru_stime, peak, verdict)


def judge(arguments: list[str], code: int, out: str, err: str, sent: int) -> str:
    """Return what is wrong, or an empty text. `sent` is the signal that the command was sent, 0 for none."""
    if noise := _NOISE.search(err + out):
        return f"printed {noise[0]!r}"
    if sent and code in (0, -sent, 128 + sent):
        return ""
    if code == 2:
        return _judge_refusal(out, err)
    if code == 0:
        wants_json = "--json" in arguments and not {"-h", "--help"} & set(arguments)
        return "not a JSON object" if wants_json and not _is_json_object(out) else ""
    if code == -signal.SIGXCPU:
        # On a busy machine, a run that has announced its length can reach the limit before we interrupt it.
        return "" if not sent and _ESTIMATE.search(err) else "hang"
    return f"exit code {code}"


def _judge_refusal(out: str, err: str) -> str:
    lines = err.strip().splitlines()
    if len(lines) != 1 or not lines[0].startswith("evenly: ") or not lines[0].endswith((".", "?")):
        return "not one clear sentence"
    return "output in spite of a refusal" if out else ""


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _memory(pid: int) -> int:
    """Return the resident bytes of a process, 0 if it has gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _left_behind(group: int) -> bool:
    """Kill what is left of a process group. Return True if there was anything."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _read(path: Path) -> str:
    """Return what the child has written; nothing if it has not begun, as on a busy machine."""
    try:
        with path.open("rb") as file:
            return file.read(10**6).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
