"""Progress on stderr: a bar for work that lasts longer than a second, on a terminal only, and notices anywhere."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

_BAR_AFTER_S = 1.0
_ESTIMATE_AFTER_S = 2.0
_WORTH_SAYING_S = 60.0


@contextmanager
def progress_bar(label: str, *, estimate: bool = False) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the fraction done; the bar only pulses if it is never called.

    With `estimate`, work that will take more than a minute is announced. The simulator makes its own estimate:
    what it logs is printed meanwhile.
    """
    if not sys.stderr.isatty():
        with notices(lambda text, _: typer.echo(text, err=True)):
            yield _estimating(lambda text: typer.echo(text, err=True)) if estimate else lambda _: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(label, total=None)

    def show(text: str, stage: str | None) -> None:
        bar.console.print(text, highlight=False, soft_wrap=True)
        if stage is not None:
            bar.update(task, description=stage)

    announce = _estimating(lambda text: show(text, None)) if estimate else lambda _: None

    def update(fraction: float) -> None:
        bar.update(task, description=label, total=1.0, completed=fraction)
        announce(fraction)

    timer = threading.Timer(_BAR_AFTER_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        with notices(show):
            yield update
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _estimating(show: Callable[[str], None], clock: Callable[[], float] = monotonic) -> Callable[[float], None]:
    """Return a function that takes the fraction done, and announces once that the work takes more than a minute.

    The speed is measured from the first call, since what happens before it may go at another pace.
    """
    begun = clock()
    first: list[tuple[float, float]] = []
    announced = False

    def report(fraction: float) -> None:
        nonlocal announced
        now = clock()
        if not first:
            first.append((now, fraction))
        then, done = first[0]
        if announced or now - then < _ESTIMATE_AFTER_S or fraction <= done:
            return
        total = now - begun + (now - then) * (1 - fraction) / (fraction - done)
        if total > _WORTH_SAYING_S:
            from evenly.sim.estimate import duration_text

            announced = True
            show(f"This takes roughly {duration_text(total)} in all. Ctrl-C stops it.")

    return report


@contextmanager
def notices(show: Callable[[str, str | None], None]) -> Iterator[None]:
    """Show what `evenly.sim` logs: each text, and the stage that it begins, if any."""
    logger, handler = logging.getLogger("evenly.sim"), _Notices(show)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


class _Notices(logging.Handler):
    """Passes log records of this process on. Forked workers keep silent: they would repeat each other."""

    def __init__(self, show: Callable[[str, str | None], None]) -> None:
        super().__init__()
        self._show = show
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record."""
        if record.process == self._process:
            self._show(record.getMessage(), getattr(record, "stage", None))
