"""A progress bar on stderr for work that lasts longer than a second, on a terminal only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 1.0


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float], None]]:
    """Yields a function that takes the fraction done; the bar only pulses if it is never called."""
    if not sys.stderr.isatty():
        yield lambda _: None
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
    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda fraction: bar.update(task, total=1.0, completed=fraction)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
