"""The progress of a sweep on stderr: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from evenly.cli.progress import notices

if TYPE_CHECKING:
    from evenly.sweeps import Status

_FIRST_LINE_S, _MOST_S, _GROWTH = 2.0, 60.0, 2.0  # a line after 2 seconds, then ever more rarely


@contextmanager
def sweep_progress() -> Iterator[Callable[[Status], None]]:
    """Yield a function that shows the status of a sweep."""
    if not sys.stderr.isatty():
        with notices(lambda text, _: typer.echo(text, err=True)):
            yield _lines(lambda text: typer.echo(text, err=True))
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(status: Status) -> None:
            bar.update(
                task, total=status.points, completed=status.reused + status.done, description=status_text(status)
            )

        with notices(lambda text, _: bar.console.print(text, highlight=False, soft_wrap=True)):
            yield show


def _lines(show: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> Callable[[Status], None]:
    """Return a function that prints the status now and then."""
    pause, due = _FIRST_LINE_S, clock() + _FIRST_LINE_S

    def report(status: Status) -> None:
        nonlocal pause, due
        if clock() >= due and status.done:
            show(status_text(status))
            pause = min(_GROWTH * pause, _MOST_S)
            due = clock() + pause

    return report


def status_text(status: Status) -> str:
    """Return the status in words: how many points are done and failed, and how long the rest takes."""
    from evenly.sim.estimate import duration_text

    text = f"{status.reused + status.done:,} of {status.points:,} points, {status.failed:,} failed"
    if status.seconds_left is None:
        return text
    left = status.seconds_left
    return f"{text}, about {duration_text(left) if left >= 60 else f'{left:.0f} seconds'} left"
