"""Processes on this machine. One that is killed is replaced.

Each is a fresh interpreter, not a fork: a fork would copy locks that other threads hold, and multiprocessing would
run the caller's script again. All it gets is one message with the plan, and then jobs.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections import deque
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from evenly.errors import InputError, WorkerKilledError
from evenly.sweeps.engines import Job, Outcome
from evenly.sweeps.point import Plan

_QUEUED = 2  # jobs per process: one runs, and the next is there when it ends
_MAX_DEATHS = 12  # in a row
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]);"
    "from evenly.sweeps.engines.worker import main; main(int(sys.argv[1]))"
)
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class LocalEngine:
    """Runs jobs in `workers` processes."""

    batch_s = 0.25
    batch_points: int | None = None

    def __init__(self, plan: Plan, workers: int) -> None:
        self.slots = _QUEUED * workers
        self._plan = _pickled(plan)
        self._deaths = 0  # since the last outcome
        self._processes = [_Process(self._plan) for _ in range(workers)]

    def submit(self, job: Job) -> None:
        """Send the job to the process with the fewest."""
        min(self._processes, key=lambda process: len(process.jobs)).send(job)

    def collect(self, timeout: float) -> list[Outcome]:
        """Receive what the processes have sent, and replace those that died."""
        by_pipe: dict[Any, _Process] = {process.pipe: process for process in self._processes}
        outcomes = []
        for pipe in wait(by_pipe, timeout):
            process = by_pipe[pipe]
            try:
                outcomes.append(process.receive())
                self._deaths = 0
            except (EOFError, OSError):
                outcomes += process.lost()
                self._deaths += 1
                if self._deaths > _MAX_DEATHS:
                    raise WorkerKilledError(f"{self._deaths} worker processes died without a result.") from None
                self._processes[self._processes.index(process)] = _Process(self._plan)
        return outcomes

    def close(self) -> None:
        """Kill all processes: what they were doing is not needed."""
        for process in self._processes:
            process.kill()


class _Process:
    """A process with the jobs that it has, the oldest first."""

    def __init__(self, plan: bytes) -> None:
        ours, theirs = socket.socketpair()
        environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-c", _START, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # a policy of the user's own may print
                pass_fds=[theirs.fileno()],
                env=environment,
            )
        self.pipe = Connection(ours.detach())
        self.jobs: deque[Job] = deque()
        with suppress(OSError):  # it has died already: the next receive tells
            self.pipe.send_bytes(plan)

    def send(self, job: Job) -> None:
        self.jobs.append(job)
        with suppress(OSError):
            self.pipe.send(job)

    def receive(self) -> Outcome:
        outcome: Outcome = self.pipe.recv()
        self.jobs.popleft()
        return outcome

    def lost(self) -> list[Outcome]:
        """Return the outcomes of a dead process: the first job is lost, and the others had not begun."""
        self.kill()
        code = self._child.returncode
        reason = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        jobs = [Outcome(job.number, [], job.indices) for job in self.jobs]
        return [jobs[0]._replace(lost=f"Its process {reason}"), *jobs[1:]] if jobs else []

    def kill(self) -> None:
        self.pipe.close()
        self._child.kill()
        self._child.wait()


def _pickled(plan: Plan) -> bytes:
    """Return the plan as bytes, with classes that cannot be imported elsewhere, as those of a notebook."""
    try:
        import cloudpickle  # an extra
    except ModuleNotFoundError as error:
        if error.name != "cloudpickle":
            raise
        raise InputError(
            "A sweep needs cloudpickle: run pip install '.[sweep]' in a checkout of evenly."
        ) from None
    return bytes(cloudpickle.dumps(plan))
