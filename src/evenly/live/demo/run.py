"""The demo itself: the same visits to both balancers at once, watched, and what they came to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean, pstdev

from evenly.core import JoinShortestQueue
from evenly.live.addresses import Address
from evenly.live.admin.schema import StateView
from evenly.live.demo.admin_client import ask_picker
from evenly.live.demo.balance import balance, ideal
from evenly.live.demo.frame import Side, View
from evenly.live.demo.plan import POOLS, Plan, Window
from evenly.live.demo.report import Outcome, PhaseReport, Report
from evenly.live.demo.stack import Stage
from evenly.live.demo.trace import Visit
from evenly.live.demo.traffic import Session, Traffic

POLL_EVERY = 0.5
SHOW_EVERY = 0.25

Show = Callable[[View], None]


class _Balancer:
    """One balancer under traffic, and what is kept of it."""

    def __init__(self, gateway: Address, pools: Iterable[Address], seed: int) -> None:
        self.pools = [str(pool) for pool in pools]
        self.sessions: list[Session] = []
        self.traffic = Traffic([gateway], seed=seed, ended=self.sessions.append)
        self._spreads: list[float] = []
        self._load = 0.0

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.traffic.started, self.traffic.failed)

    def side(self, load: float) -> Side:
        """What there is to see now; the spread is an average since the load changed."""
        if load != self._load:
            self._load = load
            self._spreads.clear()
        sessions = tuple(self.traffic.open[pool] for pool in self.pools)
        self._spreads.append(pstdev(sessions))
        return Side(sessions, fmean(self._spreads), self.traffic.started, self.traffic.failed)


@dataclass(frozen=True)
class _Sighting:
    """The picker's state at a time."""

    time: float
    state: StateView


class Run:
    """A run on a stage. `show` hears of it four times a second."""

    def __init__(self, stage: Stage, plan: Plan, show: Show) -> None:
        self._stage = stage
        self._plan = plan
        self._show = show
        self._evenly = _Balancer(stage.evenly, stage.pools, plan.seed)
        self._rival = _Balancer(stage.rival, stage.rival_pools, plan.seed)
        self._sightings: list[_Sighting] = []

    async def perform(self) -> Report | None:
        """Play the plan; None if there is nothing to report, because the picker was not to be heard."""
        visits = self._plan.visits()
        await self._play(visits)
        return await self._report(visits)

    async def _play(self, visits: Iterable[Visit]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = [tasks.create_task(self._poll()), tasks.create_task(self._draw())]
                playing = [tasks.create_task(each.traffic.run(visits)) for each in (self._evenly, self._rival)]
                await asyncio.wait(playing)
                for task in watching:
                    task.cancel()
        except* OSError as group:  # the output cannot be written
            raise group.exceptions[0] from None

    async def _poll(self) -> None:
        while True:
            state = await ask_picker(self._stage.admin)
            if state is not None:
                self._sightings.append(_Sighting(self._evenly.traffic.now, state))
            await asyncio.sleep(POLL_EVERY)

    async def _draw(self) -> None:
        while True:
            time = self._evenly.traffic.now
            load = self._plan.load_at(time)
            picker = self._sightings[-1].state if self._sightings else None
            self._show(
                View(
                    time=min(time, self._plan.seconds),
                    seconds=self._plan.seconds,
                    load=load,
                    evenly=self._evenly.side(load),
                    rival=self._rival.side(load),
                    picker=picker,
                )
            )
            await asyncio.sleep(SHOW_EVERY)

    async def _report(self, visits: tuple[Visit, ...]) -> Report | None:
        final = await ask_picker(self._stage.admin)
        best = ideal(visits, POOLS, JoinShortestQueue(), self._plan.seed)
        phases = [self._phase(window, best) for window in self._plan.windows]
        measured = tuple(phase for phase in phases if phase is not None)
        if final is None or len(measured) < len(phases):
            return None
        return Report(self._plan, measured, self._evenly.outcome, self._rival.outcome, final)

    def _phase(self, window: Window, best: list[Session]) -> PhaseReport | None:
        begin, end = window.begin, window.end
        thresholds = [
            seen.state.threshold
            for seen in self._sightings
            if begin <= seen.time < end and seen.state.threshold is not None
        ]
        if not thresholds:
            return None
        return PhaseReport(
            window,
            tuple(thresholds),
            evenly=balance(self._evenly.sessions, self._evenly.pools, begin, end),
            ideal=balance(best, [str(pool) for pool in range(POOLS)], begin, end),
            rival=balance(self._rival.sessions, self._rival.pools, begin, end),
        )


async def encore(stage: Stage, plan: Plan) -> None:
    """Go on with steady traffic to both balancers until cancelled."""
    gateways = (stage.evenly, stage.rival)
    traffic = [Traffic([gateway], seed=plan.seed, ended=lambda _: None) for gateway in gateways]
    async with asyncio.TaskGroup() as tasks:
        for each in traffic:
            tasks.create_task(each.run(plan.encore()))
