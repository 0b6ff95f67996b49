"""Run jobs in threads, which the compiled loops allow, and stop them all when one fails or the user does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from evenly.sim.simulation import Tick

_WAKE_UP = 0.1  # seconds between checks for an interrupt

_Found = TypeVar("_Found")


class _Stopped(Exception):  # noqa: N818  (not an error: another job failed, or Ctrl-C)
    pass


def run_jobs(
    jobs: Sequence[Callable[[Tick], _Found]],
    threads: int,
    horizon: float,
    progress: Callable[[float], None] | None,
) -> list[_Found]:
    """Run all jobs. Each gets a function to call with its time from 0 to `horizon`, once or for several rounds."""
    stop, lock = threading.Event(), threading.Lock()
    reached = [0.0] * len(jobs)

    def ticker(place: int) -> Tick:
        def tick(now: float) -> None:
            if stop.is_set():
                raise _Stopped
            with lock:
                reached[place] = max(reached[place], now / horizon)
                if progress is not None:
                    progress(min(sum(reached) / len(jobs), 1.0))

        return tick

    pool = ThreadPoolExecutor(max(min(threads, len(jobs)), 1))
    try:
        futures = [pool.submit(job, ticker(place)) for place, job in enumerate(jobs)]
        left = set(futures)
        while left:  # without a timeout, Python may not notice an interrupt
            done, left = wait(left, timeout=_WAKE_UP, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        return [future.result() for future in futures]
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
