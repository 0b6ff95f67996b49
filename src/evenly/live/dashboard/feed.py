"""The stream of a dashboard: one message per tick, made once and shared by all readers.

Without readers, a point of the history every few seconds is all that happens. Numbers of readers and of messages
that wait for one are bounded: a reader that does not keep up is disconnected and starts again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator

from evenly.live.background import repeat
from evenly.live.dashboard.frames import (
    changes,
    dump,
    figures_json,
    line_json,
    list_pieces,
    members_pieces,
    message,
    part_json,
    pool_numbers,
)
from evenly.live.dashboard.history import History, Point
from evenly.live.dashboard.source import Figures, Pools, Source
from evenly.live.log import Line, Log
from evenly.live.steps import in_steps

TICK_S = 0.5
MAX_READERS = 32
MAX_WAITING = 8  # messages for one reader: four seconds
_PARTS_EVERY = 4  # ticks between two looks at the other processes


class TooManyReadersError(Exception):
    """There are `MAX_READERS` readers already."""


class Reader:
    """One open dashboard: the messages that wait for it. `None` is the end."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_WAITING)
        self.greeted = False
        self.ended = False

    def offer(self, text: bytes) -> None:
        """Hand over a message, or end a reader that does not keep up."""
        if self._waiting.full():
            self.end()
        else:
            self._waiting.put_nowait(text)

    def end(self) -> None:
        """End the stream after what was handed over; drop some of that if there is no room."""
        self.ended = True
        if self._waiting.full():
            self._waiting.get_nowait()
        self._waiting.put_nowait(None)

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield the messages until the end."""
        while (text := await self._waiting.get()) is not None:
            yield text


class Feed:
    """Looks at a source every tick and tells the readers. `log` is where events come from."""

    def __init__(self, source: Source, log: Log, *, clock: Callable[[], float] = time.time) -> None:
        self.source = source
        self._log = log
        self._clock = clock
        self._started = clock()
        self._history = History()
        self._readers: set[Reader] = set()
        self._closed = False
        self._tick = 0
        self._members: tuple[object, ...] = ()
        self._numbers: list[int] = []
        self._line = 0  # the last line of the log that readers have
        self._point: Point | None = None

    async def run(self) -> None:
        """Tick until cancelled."""
        await repeat(self.tick, TICK_S, self._log)

    def subscribe(self) -> Reader:
        """Return a new reader. Its first message has everything, the others what changed."""
        if len(self._readers) >= MAX_READERS:
            raise TooManyReadersError
        reader = Reader()
        if self._closed:
            reader.end()
        else:
            self._readers.add(reader)
        return reader

    def unsubscribe(self, reader: Reader) -> None:
        """Forget a reader. Idempotent."""
        self._readers.discard(reader)

    def close(self) -> None:
        """End all streams: the process stops."""
        self._closed = True
        for reader in self._readers:
            reader.end()
        self._readers.clear()

    async def tick(self) -> None:
        """Note a point of the history if it is time, and send a message to each reader."""
        now = self._clock()
        if not self._readers and not self._history.is_due(now):
            return
        figures = self.source.figures()
        self._point = self._history.note(figures, now) if self._history.is_due(now) else None
        if self._readers:
            await self._tell(figures, now)

    async def _tell(self, figures: Figures, now: float) -> None:
        """Readers that came meanwhile wait for the next tick: a frame must follow what its reader has."""
        readers = list(self._readers)
        new = [reader for reader in readers if not reader.greeted]
        pools = self.source.pools()
        await asyncio.sleep(0)
        numbers = await in_steps(pool_numbers(pools))
        lines = list(self._log.recent)
        known = [reader for reader in readers if reader.greeted]
        if known:
            self._send(known, message("frame", await in_steps(self._frame(figures, pools, numbers, lines, now))))
        self._members, self._numbers = _members(pools), numbers
        self._line = lines[-1].number if lines else 0
        self._tick += 1
        if new:
            self._send(new, message("hello", await in_steps(self._hello(figures, pools, numbers, lines, now))))
            for reader in new:
                reader.greeted = True
        self._readers = {reader for reader in self._readers if not reader.ended}

    def _send(self, readers: list[Reader], text: bytes) -> None:
        for reader in readers:
            reader.offer(text)

    def _frame(
        self, figures: Figures, pools: Pools, numbers: list[int], lines: list[Line], now: float
    ) -> Iterator[str]:
        yield f'{{"time":{now:.3f},"figures":{dump(figures_json(figures))}'
        if _members(pools) == self._members:
            yield f',"changes":{dump(changes(self._numbers, numbers))}'
        else:
            yield from members_pieces(pools)
            yield f',"numbers":{dump(numbers)}'
        if self._tick % _PARTS_EVERY == 0:
            yield from list_pieces("parts", map(part_json, self.source.parts()))
        if self._point is not None:
            yield f',"point":{dump(self._point.row())}'
        new = [line for line in lines if line.number > self._line]
        if new:
            yield from list_pieces("lines", map(line_json, new))
        yield "}"

    def _hello(
        self, figures: Figures, pools: Pools, numbers: list[int], lines: list[Line], now: float
    ) -> Iterator[str]:
        about = self.source.about
        first = {
            "kind": about.kind,
            "tick": TICK_S,
            "states": about.states,
            "evenStates": about.even_states,
            "actions": about.actions,
            "started": self._started,
            "time": now,
            "figures": figures_json(figures),
        }
        yield dump(first)[:-1]
        yield from members_pieces(pools)
        yield f',"numbers":{dump(numbers)}'
        yield from list_pieces("parts", map(part_json, self.source.parts()))
        yield from list_pieces("history", self._history.rows())
        yield from list_pieces("lines", map(line_json, lines))
        yield "}"


def _members(pools: Pools) -> tuple[object, ...]:
    """Return what a page knows of the pools besides their numbers."""
    return tuple(pools.names), tuple(pools.addresses), tuple(pools.weights)
