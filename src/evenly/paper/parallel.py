"""The work in pieces that share no runs, so that they can be done side by side, each by a process of its own.

Processes, for most of the work holds the interpreter's lock: pictures, fluid solutions, single events.
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
from evenly.paper.claim import Claim, Measured
from evenly.paper.claims import DEMAND, DIFFUSION, FLUID, LEARNING, MODEL, SETTLING, SHARES, STEADINESS, Section
from evenly.paper.experiments.lab import Lab
from evenly.paper.figure import Drawing
from evenly.paper.figures import FIGURES

_WAKE_UP = 0.1  # seconds between looks at the progress, and for an interrupt

Progress = Callable[[float], None]  # hears of the fraction done


@dataclass(frozen=True)
class Chapter:
    """Figures and claims that share runs."""

    figures: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All its claims."""
        return tuple(claim for section in self.sections for claim in section.claims)


CHAPTERS = (  # the longest first
    Chapter(("fig3", "fig4", "fig5"), (STEADINESS, SHARES)),
    Chapter(("fig1", "fig2"), (MODEL, FLUID)),
    Chapter((), (LEARNING, SETTLING)),
    Chapter(("fig6",), (DEMAND,)),
    Chapter((), (DIFFUSION,)),
)
STEPS = sum(len(chapter.figures) + len(chapter.claims) for chapter in CHAPTERS)


@dataclass(frozen=True)
class Findings:
    """Figures drawn and numbers measured, by name."""

    drawings: dict[str, Drawing]
    measured: dict[str, tuple[Measured, ...]]


def study(chapter: Chapter, lab: Lab, folder: Path, tick: Callable[[], None]) -> Findings:
    """Draw a chapter's figures and measure its claims; `tick` hears of each."""
    drawings, measured = {}, {}
    for name in chapter.figures:
        drawings[name] = FIGURES[name].write(lab, folder)
        tick()
    for claim in chapter.claims:
        measured[claim.name] = tuple(claim.measure(lab))
        tick()
    return Findings(drawings, measured)


def study_all(lab: Lab, folder: Path, progress: Progress, workers: int) -> list[Findings]:
    """All chapters, by so many processes. What comes out does not depend on their number."""
    # A copy of this process has all it needs at once; elsewhere than on Linux, copies are not safe.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    done = context.Value("i", 0)
    others = active_children()
    pool = ProcessPoolExecutor(min(workers, len(CHAPTERS)), context, _begin, (done, os.getpid()))
    try:
        jobs = [pool.submit(_study, place, lab.seed, lab.quick, folder) for place in range(len(CHAPTERS))]
        finished, left = wait(jobs, _WAKE_UP, FIRST_EXCEPTION)
        while left and not any(job.exception() for job in finished):
            progress(done.value / STEPS)
            finished, left = wait(jobs, _WAKE_UP, FIRST_EXCEPTION)
        return [job.result() for job in jobs if job in finished]  # raises what a chapter raised
    except BrokenProcessPool:
        raise WorkerKilledError("A process that measured was killed, perhaps for want of memory.") from None
    finally:
        for process in active_children():  # after an interrupt they are busy, with nothing worth waiting for
            if process not in others:
                process.kill()
        pool.shutdown(cancel_futures=True)


_done: Any = None  # the count of steps, shared by the processes


def _begin(done: Any, parent: int) -> None:  # noqa: ANN401  (multiprocessing's values have no type of their own)
    """A process starts. Ctrl-C is the parent's to hear, and who has no parent any more has nothing to do."""
    global _done  # noqa: PLW0603  (a process has one count)
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
    return study(CHAPTERS[place], Lab(seed, quick=quick), folder, _tick)
