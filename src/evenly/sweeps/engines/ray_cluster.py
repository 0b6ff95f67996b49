"""A Ray cluster: plain tasks, a bounded number in flight.

Ray runs a task again, up to three times, if its process or its node dies. Our own errors are never tried again.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import sys
import tempfile
import time
from typing import Any

from evenly import __version__
from evenly.errors import InputError, WorkerKilledError
from evenly.sweeps.engines import Job, Outcome
from evenly.sweeps.point import Plan, Row, run_batch

_RETRIES = 3
_REACH_S = 10.0
_PER_CORE = 2  # tasks in flight: one runs, and the next is there when it ends
_COUNT_CORES_S = 5.0  # nodes may join


class RayEngine:
    """Runs jobs as tasks on the cluster at an address, or on a Ray of its own on this machine."""

    batch_s = 0.5  # a task costs about a millisecond
    batch_points: int | None = None

    def __init__(self, plan: Plan, address: str | None) -> None:
        self._ray = _library()
        self._folder: str | None = None
        self._own = not self._ray.is_initialized()
        if self._own:
            self._start(address)
        self._task = self._ray.remote(num_cpus=1, max_retries=_RETRIES, retry_exceptions=False)(_run)
        self._plan = self._ray.put(plan)
        self._jobs: dict[Any, Job] = {}
        self._counted = -_COUNT_CORES_S
        self._cores = 1

    def _start(self, address: str | None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            self._folder = tempfile.mkdtemp(prefix="ev", dir="/tmp")  # sockets in it must have short names
            self._ray.init(address="local", include_dashboard=False, _temp_dir=self._folder, **quiet)
            return
        _check_reachable(address)
        try:
            self._ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, AssertionError) as error:
            reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
            raise InputError(f"Cannot join the Ray cluster at {address}: {reason}.") from None

    @property
    def workers(self) -> int:
        """The cores of the cluster, as far as they are known."""
        now = time.monotonic()
        if now - self._counted > _COUNT_CORES_S:
            self._counted = now
            self._cores = max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        return self._cores

    @property
    def slots(self) -> int:
        """How many tasks to keep in flight."""
        return _PER_CORE * self.workers

    def submit(self, job: Job) -> None:
        """Start a task."""
        self._jobs[self._task.remote(self._plan, job, sys.path)] = job

    def collect(self, timeout: float) -> list[Outcome]:
        """Return the outcomes of all tasks that ended."""
        ready, _ = self._ray.wait(list(self._jobs), timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(list(self._jobs), num_returns=len(self._jobs), timeout=0)
        return [self._outcome(reference, self._jobs.pop(reference)) for reference in ready]

    def _outcome(self, reference: Any, job: Job) -> Outcome:  # noqa: ANN401
        errors = self._ray.exceptions
        try:
            rows, left = self._ray.get(reference)
        except errors.RayTaskError as error:  # ours: a row has the errors of points
            raise error.as_instanceof_cause() from None
        except errors.RayError as error:
            return Outcome(job.number, [], job.indices, f"Its process was lost ({type(error).__name__})")
        return Outcome(job.number, rows, left)

    def close(self) -> None:
        """Cancel what runs, and leave the cluster, or stop it if it is our own."""
        for reference in self._jobs:
            self._ray.cancel(reference, force=True)
        if self._own:
            self._ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _check_reachable(address: str) -> None:
    """Reject an address where nothing listens: Ray would try it for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:  # "auto", say, which Ray finds out at once
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_S).close()
    except (OSError, ValueError, OverflowError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise InputError(f"Cannot reach a Ray cluster at {address}: {reason}.") from None


def _run(plan: Plan, job: Job, path: list[str]) -> tuple[list[Row], list[int]]:
    """Run a job on some node. Modules of the user's own are looked for where the driver finds them."""
    if plan.version != __version__:
        raise WorkerKilledError(
            f"A node has evenly {__version__}, but the sweep has {plan.version}: install the same."
        )
    sys.path.extend(entry for entry in path if entry not in sys.path)
    return run_batch(plan, job.indices, job.seconds)


def _library() -> Any:  # noqa: ANN401  (a module)
    try:
        import ray  # an extra
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise InputError("The engine ray needs Ray: run pip install '.[ray]' in a checkout of evenly.") from None
    return ray
