"""The demo run: sessions over the fleet, while some of its parts are killed and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from statistics import fmean, pstdev

from evenly.errors import InputError
from evenly.live.demo.balance import balance
from evenly.live.demo.fleet.counts import Watch
from evenly.live.demo.fleet.frame import FleetFrame
from evenly.live.demo.fleet.plan import KILLED_DISPATCHER, KILLED_POOLS, REPORT_INTERVAL_S, FleetPlan
from evenly.live.demo.fleet.recovery import Recovery, back_since
from evenly.live.demo.fleet.replay import replay_jsq, replay_stale_reports
from evenly.live.demo.fleet.report import FleetReport
from evenly.live.demo.fleet.stack import FleetStack
from evenly.live.demo.fleet.traffic import FleetTraffic
from evenly.live.demo.plan import POOLS, Window
from evenly.live.demo.run import INTERVAL_S
from evenly.live.demo.traffic import Session
from evenly.live.demo.window_report import WindowReport
from evenly.live.store.base import PoolState

_CONNECT_TIMEOUT_S = 60.0  # for all agents, on a busy machine
_RETRY_S = 0.05
_MIN_WINDOW_S = 0.5

Show = Callable[[FleetFrame], None]


class FleetRun:
    """A run of the plan on the stack. `show` is called with a frame four times per second."""

    def __init__(self, stack: FleetStack, plan: FleetPlan, show: Show) -> None:
        self._stack = stack
        self._plan = plan
        self._show = show
        self._names = [part.name for part in stack.pools]
        self._sessions: list[Session] = []
        self._watch = Watch(stack.admin)
        self._thresholds: list[tuple[float, int]] = []
        self._spreads: list[float] = []
        self._load = 0.0
        self._news = ""
        self._dispatcher = Recovery(stack.dispatchers[KILLED_DISPATCHER])
        self._pools = {part.name: Recovery(part) for part in (stack.pools[each] for each in KILLED_POOLS)}
        self._traffic = FleetTraffic(
            stack.api,
            seed=plan.seed,
            ended=self._sessions.append,
            picked=self._picked,
            greeted=self._greeted,
        )

    async def measure(self) -> FleetReport | None:
        """Run the plan and return the report, or None if no dispatcher answered in one of the windows."""
        await self._wait_for_agents()
        await self._drive()
        await self._watch.look_at_all()
        return self._report()

    async def _wait_for_agents(self) -> None:
        """Wait until every dispatcher gives sessions to every pool."""
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                while not all([await self._serving(number) == POOLS for number in range(len(self._stack.admin))]):
                    await asyncio.sleep(_RETRY_S)
        except TimeoutError:
            raise InputError("The pools of the demo did not reach its dispatchers within a minute.") from None

    async def _serving(self, number: int) -> int:
        await self._watch.look(number)
        view = self._watch.views[number]
        return 0 if view is None else sum(pool.state is PoolState.SERVING for pool in view.pools)

    async def _drive(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                others = [tasks.create_task(work()) for work in (self._poll, self._draw)]
                disturbing = tasks.create_task(self._disturb())
                await self._traffic.run(self._plan.visits(), until=self._plan.seconds)
                await disturbing
                for task in others:
                    task.cancel()
        except* (OSError, InputError) as group:  # the screen cannot be written, or a part does not start again
            raise group.exceptions[0] from None

    async def _disturb(self) -> None:
        await self._until(self._plan.kill_at)
        await self._watch.look(KILLED_DISPATCHER)  # its counts die with it
        await self._all(lambda each: each.kill(self._traffic.now))
        self._watch.killed(KILLED_DISPATCHER)
        self._news = f"{self._plan.kill_at:.0f} s: {self._killed_names} killed"
        await self._until(self._plan.restart_at)
        self._news = f"{self._plan.restart_at:.0f} s: {self._killed_names} started again"
        await self._all(lambda each: each.start(self._traffic.now))

    async def _until(self, time: float) -> None:
        await asyncio.sleep(max(time - self._traffic.now, 0))

    async def _all(self, action: Callable[[Recovery], Awaitable[None]]) -> None:
        await asyncio.gather(*(action(each) for each in self._recoveries))

    @property
    def _recoveries(self) -> tuple[Recovery, ...]:
        return (self._dispatcher, *self._pools.values())

    @property
    def _killed_names(self) -> str:
        return ", ".join(each.name for each in self._recoveries)

    def _picked(self, dispatcher: int) -> None:
        if dispatcher == KILLED_DISPATCHER:
            self._dispatcher.served(self._traffic.now)

    def _greeted(self, pool: str) -> None:
        if pool in self._pools:
            self._pools[pool].served(self._traffic.now)

    async def _poll(self) -> None:
        while True:
            for number, part in enumerate(self._stack.dispatchers):
                if part.up:
                    await self._watch.look(number)
            view = self._watch.view
            if view is not None:
                self._thresholds.append((self._traffic.now, view.threshold))
            await asyncio.sleep(INTERVAL_S)

    async def _draw(self) -> None:
        while True:
            self._show(self._frame())
            await asyncio.sleep(INTERVAL_S)

    def _frame(self) -> FleetFrame:
        time = self._traffic.now
        load = self._plan.load_at(time)
        if load != self._load:
            self._load = load
            self._spreads.clear()
        sessions = tuple(self._traffic.open[name] for name in self._names)
        down = frozenset(number for number, part in enumerate(self._stack.pools) if not part.up)
        self._spreads.append(pstdev(tasks for number, tasks in enumerate(sessions) if number not in down))
        view, tally = self._watch.view, self._traffic.tally
        return FleetFrame(
            time=min(time, self._plan.seconds),
            seconds=self._plan.seconds,
            load=load * POOLS / (POOLS - len(down)),
            sessions=sessions,
            pools_down=down,
            dispatchers_up=tuple(part.up for part in self._stack.dispatchers),
            threshold=None if view is None else view.threshold,
            tokens=None if view is None else (view.tokens.green, view.tokens.yellow),
            counts=self._watch.counts,
            spread=fmean(self._spreads),
            begun=tally.sessions,
            cut=tally.cut,
            lost=tally.lost,
            news=self._news,
        )

    def _report(self) -> FleetReport | None:
        visits, view = self._plan.visits(), self._watch.view
        if not self._traffic.tally.pick_s or view is None:
            return None
        delay = fmean(self._traffic.tally.pick_s) / 2  # a message goes one way
        jsq = replay_jsq(visits, POOLS, delay=delay, seed=self._plan.seed)
        stale = replay_stale_reports(visits, POOLS, delay=delay, interval=REPORT_INTERVAL_S, seed=self._plan.seed)
        windows = [self._window(window, jsq, stale) for window in self._plan.windows]
        measured = tuple(window for window in windows if window is not None)
        if not measured:
            return None
        return FleetReport(
            plan=self._plan,
            windows=measured,
            delay=delay,
            tally=self._traffic.tally,
            counts=self._watch.counts,
            expired=view.expired,
            released=view.released,
            recoveries=self._recoveries,
        )

    def _window(self, window: Window, jsq: list[Session], stale: list[Session]) -> WindowReport | None:
        """Measure a window, or the part of it in which all pools serve; None if too little of it is left."""
        if window.begin > self._plan.kill_at:
            since = back_since(self._pools.values())
            begin = window.end if since is None else max(window.begin, since)
            window = Window(window.load, begin, window.end)
        begin, end = window.begin, window.end
        thresholds = tuple(threshold for time, threshold in self._thresholds if begin <= time < end)
        if end - begin < _MIN_WINDOW_S or not thresholds:
            return None
        numbers = [str(pool) for pool in range(POOLS)]
        sides = {
            "evenly": balance(self._sessions, self._names, begin, end),
            "jsq": balance(jsq, numbers, begin, end),
            "stale_reports": balance(stale, numbers, begin, end),
        }
        return WindowReport(window, thresholds, sides)
