"""Threads that run replications, and that one interrupt ends, whatever a policy of the user's own does."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable

from evenly.sim.estimate import log_estimate
from evenly.sim.replication import Plan, Replication, replicate
from evenly.sim.scenario import Scenario
from evenly.sim.simulation import Tick

_WAKE_UP = 0.1  # seconds between checks for an interrupt
_PATIENCE = 2.0  # seconds to wait for threads that were told to stop
_SHORT_RUN = 1.0  # seconds; a longer run is worth an estimate

Job = tuple[Scenario, Plan, int]
Progress = Callable[[float], None]  # called with the fraction done


class _Stopped(BaseException):  # not an error: another replication failed, or Ctrl-C; policies must not catch it
    pass


def run_all(jobs: list[Job], threads: int, progress: Progress | None) -> list[Replication]:
    """Run all replications in threads: the kernels release the GIL."""
    stop = threading.Event()
    finished = threading.Event()  # set when all are done, or one has failed
    lock = threading.Lock()
    done = 0.0  # in replications
    waiting = iter(enumerate(jobs))
    outcomes: dict[int, Replication] = {}
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while (taken := take()) is not None:
                place, job = taken
                outcomes[place] = replicate(*job, ticker(job[0].horizon))
                if len(outcomes) == len(jobs):
                    finished.set()
        except BaseException as error:
            failures.append(error)
            finished.set()

    def take() -> tuple[int, Job] | None:
        with lock:
            return next(waiting, None)

    def ticker(horizon: float) -> Tick:
        before = 0.0

        def tick(now: float) -> None:
            nonlocal before, done
            if stop.is_set():
                raise _Stopped
            if progress is not None:
                with lock:
                    done += now / horizon - before
                    before = now / horizon
                    progress(done / len(jobs))

        return tick

    # Not an executor: Python waits for its threads at exit, and a policy of the user's own may never return.
    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        if not finished.wait(_SHORT_RUN):
            log_estimate([(scenario, plan) for scenario, plan, index in jobs if index == 0], threads)
        while not finished.wait(_WAKE_UP):  # without a timeout, Python may not notice an interrupt
            pass
        if failures:
            raise failures[0]
        return [outcomes[place] for place in range(len(jobs))]
    finally:
        stop.set()
        _end(workers)


def _end(workers: list[threading.Thread]) -> None:
    """Wait for the threads, which stop between two slices of a run; abandon a policy that does not return."""
    deadline = time.monotonic() + _PATIENCE
    for worker in workers:
        if worker.ident is None:  # not started
            continue
        worker.join(max(deadline - time.monotonic(), 0.0))
        if worker.is_alive():  # ends a loop in Python, but not a call that sleeps
            set_async_exc = ctypes.pythonapi.PyThreadState_SetAsyncExc
            set_async_exc(ctypes.c_ulong(worker.ident), ctypes.py_object(_Stopped))
