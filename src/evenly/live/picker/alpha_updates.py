"""The alpha that `evenly tune` recommends for so many pools, found while the picker works.

It takes a few seconds of computing, so it is done by a process of its own, and done again when the number of pools
changes or when the pools have more sessions than was thought of.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE

from evenly.live.balancer.balancer import Balancer
from evenly.live.log import Log
from evenly.live.processes import end_child, start_child

ASSUMED_LOAD_MAX = 10.0  # when nobody says it; alpha hardly depends on it
MOST_LOAD = 1000.0
_PAUSE = 1.0  # pools often come together
_TIMEOUT = 120.0
_AGAIN = 60.0


class Advisor:
    """Keeps the balancer's alpha at what is recommended."""

    def __init__(self, balancer: Balancer, load_max: float | None, log: Log) -> None:
        self._balancer = balancer
        self._log = log
        self._told = load_max
        self._load_max = load_max or ASSUMED_LOAD_MAX
        self._answered: tuple[int, float] | None = None

    async def run(self) -> None:
        """For ever."""
        while True:
            question = self._question()
            if question is None or question == self._answered:
                await asyncio.sleep(_PAUSE)
            elif await self._ask(*question):
                self._answered = question
            else:
                await asyncio.sleep(_AGAIN)

    def _question(self) -> tuple[int, float] | None:
        """Pools and the largest load, which is doubled when there is more; None with too few pools to ask."""
        pools = [pool for pool in self._balancer.pools if not (pool.draining or pool.leaving)]
        if len(pools) < 2:
            return None
        mean = sum(pool.sessions for pool in pools) / len(pools)
        while self._told is None and mean > self._load_max < MOST_LOAD:
            self._load_max = min(2 * self._load_max, MOST_LOAD)
        return len(pools), self._load_max

    async def _ask(self, pools: int, load_max: float) -> bool:
        """Whether there was an answer."""
        tune = ("nice", sys.executable, "-m", "evenly", "tune", "--json")
        try:
            process = await start_child(*tune, f"--pools={pools}", f"--load-max={load_max}", stdout=PIPE)
        except OSError as error:  # no memory, no processes left
            self._log.event("no advice on alpha", pools=pools, load_max=load_max, reason=str(error))
            return False
        try:
            out, _ = await asyncio.wait_for(process.communicate(), _TIMEOUT)
            self._balancer.set_alpha(str(json.loads(out)["recommended"]))
            return True
        except (ValueError, KeyError, TimeoutError):
            self._log.event("no advice on alpha", pools=pools, load_max=load_max, code=process.returncode)
            return False
        finally:
            await end_child(process)
