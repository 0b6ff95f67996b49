"""The slow reference for late messages: the peers of `evenly.core.protocol` and the policies of `evenly.core`.

It contains no policy rules. It draws the same random numbers in the same order as the kernel, carries messages,
and turns a uniform into one of the candidates that the policy offers. Where the kernel ranks the pools by what the
dispatcher knows, so does `Ranking`, and the policy's candidates must be the pools that rank lowest.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar, cast

import numpy as np

from evenly.core import JoinShortestQueue, LearningRule, RandomRouting, StaleReports
from evenly.core.protocol import DispatcherPeer, Pick, PoolPeer, ToDispatcher
from evenly.sim.kernels.flight import Delays, new_flight, refill_delays
from evenly.sim.kernels.rng import BUFFER, new_streams, refill_events
from evenly.sim.reference import Choices
from evenly.sim.scenario import Scenario

T = TypeVar("T")

FOREVER = 1e300


class Ranking:
    """Pools by level, in the kernel's order: a pool that moves swaps places at the border of its level."""

    def __init__(self, levels: Sequence[int]) -> None:
        self.level = list(levels)
        self.order = sorted(range(len(levels)), key=levels.__getitem__)

    def lowest(self) -> list[int]:
        return [pool for pool in self.order if self.level[pool] == min(self.level)]

    def move(self, pool: int, level: int) -> None:
        while self.level[pool] < level:
            border = max(i for i, other in enumerate(self.order) if self.level[other] == self.level[pool])
            self._swap(pool, border, +1)
        while self.level[pool] > level:
            border = min(i for i, other in enumerate(self.order) if self.level[other] == self.level[pool])
            self._swap(pool, border, -1)

    def _swap(self, pool: int, border: int, step: int) -> None:
        here = self.order.index(pool)
        self.order[here], self.order[border] = self.order[border], pool
        self.level[pool] += step


class NetworkReference:
    """One replication of a scenario with late messages, one step per arrival or departure."""

    def __init__(self, scenario: Scenario, seed: np.random.SeedSequence) -> None:
        self.scenario = scenario
        self.time = 0.0
        self.arrivals = 0
        self.without_token = self.lost = 0
        self.tasks: list[int] = scenario.tasks_at_start().tolist()
        self._streams = new_streams(seed)
        self._flight = new_flight(seed, 1)
        self._position = 0
        self._choices = Choices(self._streams)
        self._delay_position = {"travel": 0, "signal": 0}
        self._owners = [pool for pool, tasks in enumerate(self.tasks) for _ in range(tasks)]
        self._sessions: list[Any] = [("start", index) for index in range(len(self._owners))]
        self._flying: list[tuple[float, int, Callable[[], None]]] = []
        self._serial = count()
        self._next_report = math.inf
        self.reports = 0
        self._heard = [0] * scenario.pools
        self._ranking = Ranking(self.tasks)
        self._start_policy()
        self._phase = 0
        self._rate = self._current_rate()
        self._next_time = self._time_after(float(self._streams.holding[0]))

    def _start_policy(self) -> None:
        scenario = self.scenario
        if scenario.policy == "threshold":
            rule = None if scenario.alpha is None else LearningRule(scenario.alpha)
            self.dispatcher = DispatcherPeer(
                scenario.initial_threshold,
                rule,
                term=1,
                lease=FOREVER,
                silence=FOREVER,
                memory=FOREVER,
                highest=None if scenario.capacity is None else scenario.capacity - 1,
            )
            self.pools = [
                PoolPeer(pool, incarnation=1, capacity=scenario.capacity) for pool in range(scenario.pools)
            ]
            for session, pool in zip(self._sessions, self._owners, strict=True):
                self.pools[pool].begin(session)
            for pool, peer in enumerate(self.pools):
                self.dispatcher.set_capacity(pool, scenario.capacity)
                reply = self.dispatcher.receive(0.0, peer.heartbeat())
                assert reply is not None
                peer.receive(reply)
            self._joining = self.messages()
            return
        self.policy: Any = {"jsq": JoinShortestQueue, "random": RandomRouting, "stale-reports": StaleReports}.get(
            scenario.info.name, lambda: None
        )()
        if self.policy is not None:
            for pool, tasks in enumerate(self.tasks):
                self.policy.join(pool, tasks)
        if scenario.policy == "stale-reports":
            self._next_report = scenario.interval / scenario.service_rate / scenario.pools

    def messages(self) -> tuple[int, int, int]:
        """Return the messages of the pools so far: green, yellow and resync."""
        sent = [peer.sent for peer in self.pools]
        return (
            sum(each.green for each in sent),
            sum(each.yellow for each in sent),
            sum(each.resync for each in sent),
        )

    def messages_since_start(self) -> list[int]:
        return [now - then for now, then in zip(self.messages(), self._joining, strict=True)]

    def estimates(self) -> list[int]:
        """Return what the dispatcher takes the tasks of each pool to be."""
        if self.scenario.policy == "threshold":
            return [self.dispatcher.estimate(pool) for pool in range(self.scenario.pools)]
        return list(self._ranking.level)

    # --- time ---

    def step(self) -> None:
        """Simulate up to the next arrival or departure, and everything that reaches its end before."""
        while not self._try_step():
            pass

    def _try_step(self) -> bool:
        while True:
            first = min(self._next_delivery(), self._next_report, self._next_time)
            if self._phase + 1 < len(self.scenario.phases) and self._phase_start() < first:
                self._begin_next_phase()
            elif first == self._next_time < min(self._next_delivery(), self._next_report):
                break
            elif self._next_report < self._next_delivery():
                self._regular_report()
            else:
                self.time, _, deliver = heapq.heappop(self._flying)
                deliver()
        self.time = self._next_time
        mark = float(self._streams.events[self._position]) * self._rate
        happened = True
        if mark >= self._peak():
            self._depart(int((mark - self._peak()) * (1.0 / self.scenario.service_rate)))
        else:
            load = self.scenario.phases[self._phase].load_at(self.time)
            happened = mark < self.scenario.pools * self.scenario.service_rate * load
            if happened:
                self._arrive()
        self._position += 1
        if self._position == BUFFER:
            refill_events(self._streams, False)
            self._position = 0
        self._rate = self._current_rate()
        self._next_time = self._time_after(float(self._streams.holding[self._position]))
        return happened

    def _next_delivery(self) -> float:
        return self._flying[0][0] if self._flying else math.inf

    def _peak(self) -> float:
        phase = self.scenario.phases[self._phase]
        return self.scenario.pools * self.scenario.service_rate * (phase.load + phase.amplitude)

    def _current_rate(self) -> float:
        return self._peak() + len(self._owners) * self.scenario.service_rate

    def _time_after(self, unit_exponential: float) -> float:
        return self.time + unit_exponential / self._rate if self._rate > 0 else math.inf

    def _phase_start(self) -> float:
        return self.scenario.phases[self._phase + 1].start

    def _begin_next_phase(self) -> None:
        """Carry the rest of the unit exponential over to the new rate."""
        self.time = self._phase_start()
        left = self._left()
        self._phase += 1
        self._rate = self._current_rate()
        self._next_time = self._time_after(left)

    def _left(self) -> float:
        """Return the rest of the unit exponential."""
        if self._rate > 0:
            return (self._next_time - self.time) * self._rate
        return float(self._streams.holding[self._position])

    # --- what is on the way ---

    def _send(self, stream: str, deliver: Callable[[], None]) -> None:
        delay = self.scenario.message_delay
        time = delay.mean / self.scenario.service_rate
        if delay.exponential:
            delays: Delays = getattr(self._flight, stream)
            if self._delay_position[stream] == BUFFER:
                refill_delays(delays)
                self._delay_position[stream] = 0
            time *= float(delays.buffer[self._delay_position[stream]])
            self._delay_position[stream] += 1
        heapq.heappush(self._flying, (self.time + time, next(self._serial), deliver))

    def _send_task(self, pool: int, pick: Pick | None = None) -> None:
        self._send("travel", lambda: self._begin(pool, pick))

    def _to_dispatcher(self, message: ToDispatcher | None) -> None:
        if message is not None:
            self._send("signal", lambda: self._hear(message))

    def _hear(self, message: ToDispatcher) -> None:
        self.dispatcher.receive(self.time, message)
        pool = cast(int, message.report.pool)
        self._ranking.move(pool, self.dispatcher.estimate(pool))

    # --- events ---

    def _begin(self, pool: int, pick: Pick | None) -> None:
        if self.tasks[pool] == self.scenario.capacity:
            self.lost += 1
            if self.scenario.policy == "threshold":
                assert pick is not None
                self._to_dispatcher(self.pools[pool].refuse(pick.ticket, pick.threshold))
            elif self.scenario.policy == "jsq":
                self._send("signal", lambda: self._departed(pool))
            return
        left = self._left()
        self.tasks[pool] += 1
        self._owners.append(pool)
        self._sessions.append((pool, next(self._serial), None) if pick is None else (pool, pick.ticket))
        self._rate = self._current_rate()
        self._next_time = self._time_after(left)
        if pick is not None:
            self._to_dispatcher(self.pools[pool].begin(self._sessions[-1], pick.ticket, pick.threshold))

    def _depart(self, task: int) -> None:
        task = min(task, len(self._owners) - 1)
        pool, session = self._owners[task], self._sessions[task]
        self._owners[task], self._sessions[task] = self._owners[-1], self._sessions[-1]
        self._owners.pop()
        self._sessions.pop()
        self.tasks[pool] -= 1
        if self.scenario.policy == "threshold":
            self._to_dispatcher(self.pools[pool].end(session))
        elif self.scenario.policy == "jsq":
            self._send("signal", lambda: self._departed(pool))

    def _departed(self, pool: int) -> None:
        self.policy.depart(pool)
        self._ranking.move(pool, self.policy.tasks(pool))

    def _arrive(self) -> None:
        self.arrivals += 1
        policy = self.scenario.policy
        if policy == "threshold":
            self._pick()
        elif policy == "power-of-d":
            self._poll()
        else:
            pool = self.policy.arrive(self._uniform if policy == "random" else self._from_ranking)
            if policy == "jsq":
                self._ranking.move(pool, self.policy.tasks(pool))
            self._send_task(pool)

    def _pick(self) -> None:
        pick = self.dispatcher.pick(self.time, self._from_ranking)
        if pick is None:  # all are full, as far as the dispatcher knows
            self.lost += 1
            return
        self.without_token += pick.color is None
        pool = cast(int, pick.pool)
        self._ranking.move(pool, self.dispatcher.estimate(pool))
        self._send_task(pool, pick)

    def _poll(self) -> None:
        pools = list(range(self.scenario.pools))
        self._choices.have(self.scenario.sampled)  # the kernel takes all of a task's uniforms from one buffer
        sampled = [pools.pop(int(self._choices.next() * len(pools))) for _ in range(self.scenario.sampled)]
        answers: dict[int, int] = {}
        for pool in sampled:
            self._send("signal", lambda pool=pool: self._polled(sampled, answers, pool))  # type: ignore[misc]

    def _polled(self, sampled: list[int], answers: dict[int, int], pool: int) -> None:
        tasks = self.tasks[pool]

        def answer() -> None:
            answers[pool] = tasks
            if len(answers) == len(sampled):
                self._send_task(min(sampled, key=answers.__getitem__))

        self._send("signal", answer)

    def _regular_report(self) -> None:
        self.time = self._next_report
        pool, number = self.reports % self.scenario.pools, self.reports // self.scenario.pools + 1
        self.reports += 1
        interval = self.scenario.interval / self.scenario.service_rate
        self._next_report = (self.reports + 1) * (interval / self.scenario.pools)
        tasks = self.tasks[pool]

        def deliver() -> None:
            if number > self._heard[pool]:
                self._heard[pool] = number
                self.policy.report(pool, tasks)
                self._ranking.move(pool, tasks)

        self._send("signal", deliver)

    # --- choices ---

    def _uniform(self, candidates: Sequence[T], /) -> T:
        return candidates[int(self._choices.next() * len(candidates))]

    def _from_ranking(self, candidates: Sequence[T], /) -> T:
        lowest = self._ranking.lowest()
        assert sorted(cast("Sequence[int]", candidates)) == sorted(lowest)
        return cast(T, lowest[int(self._choices.next() * len(lowest))])
