"""The demo run: the same visits to both balancers at once, observed and measured."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean, pstdev

from pydantic import ValidationError

from evenly.core import JoinShortestQueue
from evenly.live.addresses import Address
from evenly.live.admin.schema import StateView
from evenly.live.admin_token import TOKEN_VARIABLE
from evenly.live.demo.balance import balance, ideal
from evenly.live.demo.frame import Frame, Side
from evenly.live.demo.http_client import request
from evenly.live.demo.plan import POOLS, RIVAL, Plan, Window
from evenly.live.demo.report import Outcome, Report
from evenly.live.demo.stack import DemoStack
from evenly.live.demo.traffic import Session, Traffic
from evenly.live.demo.window_report import WindowReport
from evenly.workload.trace import Visit

INTERVAL_S = 0.25  # between two frames, and between two looks at the picker

Show = Callable[[Frame], None]


class BalancerRun:
    """One balancer under traffic, and its finished sessions."""

    def __init__(self, gateways: Sequence[Address], pools: Iterable[Address], seed: int) -> None:
        self.pools = [str(pool) for pool in pools]
        self.sessions: list[Session] = []
        self.traffic = Traffic(gateways, seed=seed, ended=self.sessions.append)
        self._spreads: list[float] = []
        self._load = 0.0

    @property
    def outcome(self) -> Outcome:
        """The numbers of started and failed sessions."""
        return Outcome(self.traffic.started, self.traffic.failed)

    def side(self, load: float) -> Side:
        """Return the balancer's part of a frame. The spread is the mean since the load changed."""
        if load != self._load:
            self._load = load
            self._spreads.clear()
        sessions = tuple(self.traffic.open[pool] for pool in self.pools)
        self._spreads.append(pstdev(sessions))
        return Side(sessions, fmean(self._spreads), self.traffic.started, self.traffic.failed)


class Run:
    """A run of the plan on the stack. `show` is called with a frame four times per second."""

    def __init__(self, stack: DemoStack, plan: Plan, show: Show) -> None:
        self._stack = stack
        self._plan = plan
        self._show = show
        self._evenly = BalancerRun(stack.evenly, stack.pools, plan.seed)
        self._rival = BalancerRun(stack.rival, stack.rival_pools, plan.seed)
        self._picker: StateView | None = None  # at the last look
        self._thresholds: list[tuple[float, int]] = []

    async def measure(self) -> Report | None:
        """Run the plan and return the report, or None if the picker did not answer."""
        visits = self._plan.visits()
        await self._drive(visits)
        return await self._report(visits)

    async def _drive(self, visits: Iterable[Visit]) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = [tasks.create_task(self._poll()), tasks.create_task(self._draw())]
                driving = [tasks.create_task(each.traffic.run(visits)) for each in (self._evenly, self._rival)]
                await asyncio.wait(driving)
                for task in watching:
                    task.cancel()
        except* OSError as group:  # the screen cannot be written
            raise group.exceptions[0] from None

    async def _poll(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(INTERVAL_S)

    async def _look(self) -> None:
        self._picker = await _fetch_state(self._stack.admin)
        if self._picker is not None and self._picker.threshold is not None:
            self._thresholds.append((self._evenly.traffic.now, self._picker.threshold))

    async def _draw(self) -> None:
        while True:
            self._show(self._frame())
            await asyncio.sleep(INTERVAL_S)

    def _frame(self) -> Frame:
        time = self._evenly.traffic.now
        load = self._plan.load_at(time)
        evenly = self._evenly.side(load)
        if self._picker is not None:  # the columns are of the same moment as the threshold
            counted = {pool.address: pool.sessions for pool in self._picker.pools}
            evenly = replace(evenly, sessions=tuple(counted.get(pool, 0) for pool in self._evenly.pools))
        return Frame(
            time=min(time, self._plan.seconds),
            seconds=self._plan.seconds,
            load=load,
            evenly=evenly,
            rival=self._rival.side(load),
            picker=self._picker,
            dashboard=self._stack.dashboard,
        )

    async def _report(self, visits: tuple[Visit, ...]) -> Report | None:
        await self._look()
        best = ideal(visits, POOLS, JoinShortestQueue(), self._plan.seed)
        phases = [self._phase(window, best) for window in self._plan.windows]
        measured = tuple(phase for phase in phases if phase is not None)
        if self._picker is None or len(measured) < len(phases):
            return None
        return Report(self._plan, measured, self._evenly.outcome, self._rival.outcome, self._picker)

    def _phase(self, window: Window, best: list[Session]) -> WindowReport | None:
        begin, end = window.begin, window.end
        thresholds = tuple(threshold for time, threshold in self._thresholds if begin <= time < end)
        if not thresholds:
            return None
        sides = {
            "evenly": balance(self._evenly.sessions, self._evenly.pools, begin, end),
            "jsq": balance(best, [str(pool) for pool in range(POOLS)], begin, end),
            RIVAL: balance(self._rival.sessions, self._rival.pools, begin, end),
        }
        return WindowReport(window, thresholds, sides)


async def _fetch_state(admin: Address) -> StateView | None:
    """Return the picker's state, or None if it does not answer."""
    token = os.environ.get(TOKEN_VARIABLE)  # the picker inherits the variable and requires the token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return StateView.model_validate_json((await request(admin, "GET", "/state", headers=headers)).body)
    except (OSError, ValidationError):
        return None


async def keep_running(stack: DemoStack, plan: Plan) -> None:
    """Send steady traffic to both balancers until cancelled."""
    sides = (stack.evenly, stack.rival)
    traffic = [Traffic(gateways, seed=plan.seed, ended=lambda _: None) for gateways in sides]
    async with asyncio.TaskGroup() as tasks:
        for each in traffic:
            tasks.create_task(each.run(plan.endless_visits()))
