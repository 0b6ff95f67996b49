"""Long work done a little at a time. The event loop that does it also serves picks, which must not wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import TypeVar

STEP_S = 0.00025  # after which the loop gets its turn; a pick waits at most about this long

T = TypeVar("T")


async def in_steps(items: Iterable[T], *, clock: Callable[[], float] = perf_counter) -> list[T]:
    """Return the items. They are made in steps, and other tasks run in between."""
    made: list[T] = []
    end = clock() + STEP_S
    for item in items:
        made.append(item)
        if clock() >= end:
            await asyncio.sleep(0)
            end = clock() + STEP_S
    return made
