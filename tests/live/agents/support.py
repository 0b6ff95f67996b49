"""What the tests of agents share."""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from evenly.live.agents import Agent
from tests.live.processes import PATIENCE, Process

T = TypeVar("T")


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""

    def run(**fixtures: object) -> None:
        asyncio.run(test(**fixtures))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    for mark in getattr(test, "pytestmark", ()):
        run.__dict__.setdefault("pytestmark", []).append(mark)
    return run


async def until(look: Callable[[], T], wanted: Callable[[T], object] = bool) -> T:
    """Call `look` until `wanted` accepts its result, and return it."""

    async def see() -> T:
        return look()

    return await until_async(see, wanted)


async def until_async(look: Callable[[], Awaitable[T]], wanted: Callable[[T], object] = bool) -> T:
    """Await `look()` until `wanted` accepts its result, and return it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        last = time.monotonic() > deadline
        seen = await look()
        if wanted(seen):
            return seen
        assert not last, f"After {PATIENCE} s it is still {seen!r}."
        await asyncio.sleep(0.01)


def new_agent(*dispatchers: str, pool: str = "game-1", **more: Any) -> Agent:  # noqa: ANN401
    return Agent(pool=pool, address="ws://127.0.0.1:7000", dispatchers=list(dispatchers), **more)


@contextmanager
def dispatcher_process() -> Iterator[tuple[Process, int]]:
    """Run a small dispatcher in its own process. Yield it and its port."""
    with Process(sys.executable, "-m", "tests.live.agents.dispatcher") as process:
        yield process, int(process.ready_line(0, "port").split()[1])
