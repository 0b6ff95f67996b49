"""The work, split into bundles that share no runs and so can run in parallel.

They run in processes, not in threads, because most of the work holds the interpreter's lock: pictures, fluid
solutions, single events.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from evenly.errors import WorkerKilledError
from evenly.paper.claims import DEMAND, DIFFUSION, FLUID, LEARNING, MODEL, SETTLING, SHARES, STEADINESS, Section
from evenly.paper.claims.claim import Claim, Measured
from evenly.paper.experiments.lab import Lab
from evenly.paper.figures import FIGURES
from evenly.paper.figures.figure import Drawing

_WAKE_UP = 0.1  # seconds between checks for progress and for an interrupt

Progress = Callable[[float], None]  # called with the fraction done


@dataclass(frozen=True)
class Bundle:
    """Figures and claims that share runs and so belong in one process."""

    figures: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of all its sections."""
        return tuple(claim for section in self.sections for claim in section.claims)


BUNDLES = (  # the longest first
    Bundle(("fig3", "fig4", "fig5"), (STEADINESS, SHARES)),
    Bundle(("fig1", "fig2"), (MODEL, FLUID)),
    Bundle((), (LEARNING, SETTLING)),
    Bundle(("fig6",), (DEMAND,)),
    Bundle((), (DIFFUSION,)),
)
STEPS = sum(len(bundle.figures) + len(bundle.claims) for bundle in BUNDLES)


@dataclass(frozen=True)
class Findings:
    """Drawn figures and measured numbers, by name."""

    drawings: dict[str, Drawing]
    measured: dict[str, tuple[Measured, ...]]


def study(bundle: Bundle, lab: Lab, folder: Path, tick: Callable[[], None]) -> Findings:
    """Draw a bundle's figures and measure its claims, and call `tick` after each."""
    drawings, measured = {}, {}
    for name in bundle.figures:
        drawings[name] = FIGURES[name].write(lab, folder)
        tick()
    for claim in bundle.claims:
        measured[claim.name] = tuple(claim.measure(lab))
        tick()
    return Findings(drawings, measured)


def study_all(lab: Lab, folder: Path, progress: Progress, workers: int) -> list[Findings]:
    """Run all bundles, in up to `workers` processes. The findings do not depend on `workers`."""
    # A forked process starts with everything loaded. Forking is only safe on Linux.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    done = context.Value("i", 0)
    others = active_children()
    pool = ProcessPoolExecutor(min(workers, len(BUNDLES)), context, _begin, (done, os.getpid()))
    try:
        jobs = [pool.submit(_study, place, lab.seed, lab.quick, folder) for place in range(len(BUNDLES))]
        finished, left = wait(jobs, _WAKE_UP, FIRST_EXCEPTION)
        while left and not any(job.exception() for job in finished):
            progress(done.value / STEPS)
            finished, left = wait(jobs, _WAKE_UP, FIRST_EXCEPTION)
        return [job.result() for job in jobs if job in finished]  # re-raises the error of a bundle
    except BrokenProcessPool:
        raise WorkerKilledError("A worker process was killed, perhaps because memory ran out.") from None
    finally:
        for process in active_children():  # after an interrupt, waiting for them is pointless
            if process not in others:
                process.kill()
        pool.shutdown(cancel_futures=True)


_done: Any = None  # number of steps done, shared by all processes


def _begin(done: Any, parent: int) -> None:  # noqa: ANN401  (multiprocessing does not name the type of its values)
    """Set up a worker process: it leaves Ctrl-C to its parent, and exits when its parent does."""
    global _done  # noqa: PLW0603  (one per process)
    _done = done
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _tick() -> None:
    with _done.get_lock():
        _done.value += 1


def _study(place: int, seed: int, quick: bool, folder: Path) -> Findings:
    return study(BUNDLES[place], Lab(seed, quick=quick), folder, _tick)
