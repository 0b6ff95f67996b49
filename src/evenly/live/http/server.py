"""A uvicorn server inside the event loop of a process that handles signals itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


class QuietServer(uvicorn.Server):
    """A server that leaves signal handling to its process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield
