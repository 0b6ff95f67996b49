"""Work that runs beside the picks: repeated calls that survive faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from evenly.live.log import Log

Work = Coroutine[Any, Any, None]


async def repeat(act: Callable[[], Awaitable[None] | None], seconds: float, log: Log) -> None:
    """Call `act` every `seconds` seconds until cancelled. A fault is logged, and the calls continue."""
    while True:
        await asyncio.sleep(seconds)
        try:
            if (more := act()) is not None:
                await more
        except Exception as error:
            log.event("fault", where=act.__qualname__, error=repr(error))


@asynccontextmanager
async def running(work: Sequence[Work], log: Log) -> AsyncIterator[None]:
    """Run the work in tasks while the block runs. Picks continue even if some of it fails."""

    async def watched(each: Work) -> None:
        try:
            await each
        except Exception as error:
            log.event("fault", where=getattr(each, "__qualname__", ""), error=repr(error))

    tasks = [asyncio.get_running_loop().create_task(watched(each)) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in work:
            each.close()  # if its task was cancelled before it started, Python would warn


def log_faults(log: Log) -> None:
    """Log what goes wrong in callbacks of the event loop, in place of asyncio's own text."""

    def report(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        log.event("fault", error=f"{context.get('message', '')}: {context.get('exception')!r}")

    asyncio.get_running_loop().set_exception_handler(report)
