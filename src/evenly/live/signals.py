"""The signals that stop a process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable


def on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` on SIGTERM and SIGINT, and on SIGHUP if there is a terminal.

    SIGHUP means that the terminal has closed. Without a terminal it is often sent to reload a config file, so it
    is ignored: the config file is watched anyway.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    loop.add_signal_handler(signal.SIGHUP, stop if has_terminal else lambda: None)
