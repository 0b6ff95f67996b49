"""Updates of alpha to what `evenly tune` recommends for the current number of pools.

Computing the recommendation takes a few seconds, so it runs in its own process. It runs again when the number of
pools changes, or when the pools have more sessions than the recommendation assumed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence

from evenly.live.log import Log
from evenly.live.processes import end_child, start_child

ASSUMED_LOAD_MAX = 10.0  # if --load-max is not given; alpha barely depends on it
MAX_LOAD = 1000.0
_POLL_S = 1.0  # pools are often added together
_TIMEOUT_S = 120.0
_RETRY_S = 60.0


class Advisor:
    """Keeps alpha at the recommended value. `load_max` is the highest load to plan for, or None.

    `sessions` returns the number of open sessions of each pool that gets new ones; `use` takes a new alpha, and
    why it is another one.
    """

    def __init__(
        self,
        sessions: Callable[[], Sequence[int]],
        use: Callable[[str, str], None],
        load_max: float | None,
        log: Log,
    ) -> None:
        self._sessions = sessions
        self._use = use
        self._log = log
        self._given = load_max
        self._load_max = load_max or ASSUMED_LOAD_MAX
        self._answered: tuple[int, float] | None = None

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            question = self._question()
            if question is None or question == self._answered:
                await asyncio.sleep(_POLL_S)
            elif await self._ask(*question):
                self._answered = question
            else:
                await asyncio.sleep(_RETRY_S)

    def _question(self) -> tuple[int, float] | None:
        """Return the number of pools and the load to plan for; None with fewer than 2 pools.

        If no load was given, double the assumed one until it covers the mean number of sessions per pool.
        """
        pools = self._sessions()
        if len(pools) < 2:
            return None
        mean = sum(pools) / len(pools)
        while self._given is None and mean > self._load_max < MAX_LOAD:
            self._load_max = min(2 * self._load_max, MAX_LOAD)
        return len(pools), self._load_max

    def _reason(self, pools: int, load_max: float) -> str:
        """Return what differs from the question that was answered before."""
        if self._answered is None:
            return f"recommended for {pools} pools"
        before, planned = self._answered
        changes = [f"{pools} pools instead of {before}"] if pools != before else []
        if load_max != planned:
            changes.append(f"up to {load_max:g} sessions per pool instead of {planned:g}")
        return ", ".join(changes)

    async def _ask(self, pools: int, load_max: float) -> bool:
        """Run `evenly tune` and use its alpha. Return True if it succeeded."""
        tune = ("nice", sys.executable, "-m", "evenly", "tune", "--json")
        try:
            process = await start_child(
                *tune, f"--pools={pools}", f"--load-max={load_max}", stdout=PIPE, stderr=DEVNULL
            )
        except OSError as error:  # no memory or no process slot left
            self._log.event("no advice on alpha", pools=pools, load_max=load_max, reason=str(error))
            return False
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                out, _ = await process.communicate()
            self._use(str(json.loads(out)["recommended"]), self._reason(pools, load_max))
            return True
        except (ValueError, KeyError, TimeoutError):
            self._log.event("no advice on alpha", pools=pools, load_max=load_max, code=process.returncode)
            return False
        finally:
            await end_child(process)
