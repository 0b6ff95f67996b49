"""Clients of a fleet: they ask a dispatcher for a place, go straight to the pool, stay, and close."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from evenly.live.addresses import Address
from evenly.live.demo.http_client import request
from evenly.live.demo.traffic import TIMEOUT_S, ClientSession, Session
from evenly.live.session_id import QUERY_PARAMETER
from evenly.workload.trace import Visit

SESSIONS_PATH = "/v1/sessions"
MAX_ATTEMPTS = 20  # picks of one visit
_PAUSE_S = 0.2  # after a pick that failed
_MOMENT_S = 0.01  # a shorter rest of a stay is not worth a session
_CREATED = 201


@dataclass(frozen=True, slots=True)
class Place:
    """The answer to a pick."""

    session_id: str
    pool: str
    server: Address
    dispatcher: int


@dataclass(slots=True)
class Tally:
    """What happened to the visits so far."""

    visits: int = 0
    sessions: int = 0  # that began
    whole: int = 0  # visits whose stay is complete
    lost: int = 0  # visits that were given up
    cut: int = 0  # sessions that broke
    unreachable: int = 0  # picked pools that did not take the session
    elsewhere: int = 0  # picks that the other dispatcher answered
    refused: Counter[str] = field(default_factory=Counter)  # picks that no dispatcher granted, by reason
    pick_s: list[float] = field(default_factory=list)  # from the request to the answer
    begin_s: list[float] = field(default_factory=list)  # from the request to the greeting of the pool


class FleetTraffic:
    """Sessions in progress. `ended` is called with every session that has ended, also with those that broke.

    `picked` is called with the number of a dispatcher when it has answered, `greeted` with the name of a pool when
    a session has begun there.
    """

    def __init__(
        self,
        dispatchers: Sequence[Address],
        *,
        seed: int,
        ended: Callable[[Session], None],
        picked: Callable[[int], None] = lambda _: None,
        greeted: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.open: Counter[str] = Counter()
        self.tally = Tally()
        self._dispatchers = dispatchers
        self._random = random.Random(seed)
        self._ended = ended
        self._picked = picked
        self._greeted = greeted
        self._beginning: float | None = None

    @property
    def now(self) -> float:
        """Seconds since the beginning, 0 before it."""
        return 0.0 if self._beginning is None else asyncio.get_running_loop().time() - self._beginning

    async def run(self, visits: Iterable[Visit], until: float) -> None:
        """Start every visit at its time, and end all sessions at the time `until`."""
        self._beginning = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as tasks:
            for visit in visits:
                if visit.start > self.now:
                    await asyncio.sleep(visit.start - self.now)
                tasks.create_task(self._visit(visit.stay, until))

    async def _visit(self, stay: float, until: float) -> None:
        """Stay this long, in one session or, if it breaks, in several."""
        self.tally.visits += 1
        excluded: list[str] = []
        for _ in range(MAX_ATTEMPTS):
            asked = self.now
            place = await self._pick(excluded)
            if place is None:
                await asyncio.sleep(_PAUSE_S)
                excluded.clear()  # it may be the only pool left
                continue
            stayed = await self._session(place, asked, min(stay, until - self.now))
            # The place at a pool that does not answer is not given back: while it is taken, the pool looks fuller,
            # and fewer clients are sent there.
            stay -= stayed or 0
            if stay < _MOMENT_S or self.now > until - _MOMENT_S:
                self.tally.whole += 1
                return
            excluded.append(place.pool)
        self.tally.lost += 1

    async def _session(self, place: Place, asked: float, stay: float) -> float | None:
        """Hold one session; return how long it lasted. None: the pool did not take it."""
        session = ClientSession(place.server, f"/?{QUERY_PARAMETER}={quote(place.session_id, safe='')}")
        try:
            if not await session.begin():
                self.tally.unreachable += 1
                return None
            start = self.now
            self.tally.begin_s.append(start - asked)
            self.tally.sessions += 1
            self._greeted(place.pool)
            self.open[place.pool] += 1
            try:
                await asyncio.wait([session.lost], timeout=max(stay, 0))
                whole = session.close()
            finally:
                self.open[place.pool] -= 1
            end = self.now
            self._ended(Session(place.pool, start, end))
            self.tally.cut += not whole
            await asyncio.wait([session.lost], timeout=TIMEOUT_S)
            return end - start
        finally:
            session.abort()

    async def _pick(self, excluded: Sequence[str]) -> Place | None:
        """Ask a random dispatcher, and the others if it does not answer; None if no one has a place.

        The request key makes sure that a place is taken once, also if the answer of the first was lost.
        """
        key = f"{self._random.getrandbits(64):016x}"
        order = self._random.sample(range(len(self._dispatchers)), len(self._dispatchers))
        reason = "no answer"
        for tried, number in enumerate(order):
            asked = self.now
            try:
                answer = await request(
                    self._dispatchers[number],
                    "POST",
                    SESSIONS_PATH,
                    {"exclude": sorted(excluded)},
                    {"Idempotency-Key": key},
                )
            except OSError:
                continue
            values = answer.json()
            if answer.status == _CREATED:
                self.tally.elsewhere += tried > 0
                self.tally.pick_s.append(self.now - asked)
                self._picked(number)
                return Place(values["id"], values["pool"], _server(values["address"]), number)
            reason = str(values.get("code", answer.status))
        self.tally.refused[reason] += 1
        return None


def _server(address: str) -> Address:
    parts = urlsplit(address)
    assert parts.hostname is not None and parts.port is not None, address  # the demo's pools say both
    return Address(parts.hostname, parts.port)
