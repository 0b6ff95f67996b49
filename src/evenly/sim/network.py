"""The pools, the dispatcher and what is on the way between them, where messages take time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels import delayed
from evenly.sim.kernels.flight import grown_flight, new_flight
from evenly.sim.kernels.given import next_start
from evenly.sim.kernels.ledger import PolicyCode, Record
from evenly.sim.kernels.parties import NETWORK, grown_parties, new_parties
from evenly.sim.kernels.per_pool import owners
from evenly.sim.scenario import Scenario
from evenly.sim.sessions import opened, with_room
from evenly.sim.system import System

_ROOM = 1024  # messages on the way, besides one per pool


class Network:
    """The arrays of `evenly.sim.kernels.delayed`, which grow as needed."""

    def __init__(self, system: System, seed: np.random.SeedSequence) -> None:
        self._system, scenario = system, system.scenario
        delay, rate = scenario.message_delay, scenario.service_rate
        tasks = scenario.tasks_at_start()
        self._net = np.zeros(1, NETWORK)[0]
        self._net["delay"], self._net["exponential"] = delay.mean / rate, delay.exponential
        self._net["next_report"] = math.inf
        self._net["lowest"] = tasks.min()
        if scenario.policy == "stale-reports":
            self._net["interval"] = scenario.interval / rate
            self._net["next_report"] = self._net["interval"] / scenario.pools
        sampled = scenario.sampled if scenario.policy == "power-of-d" else 0
        self._ranks = np.zeros(sampled, np.int64)
        self._flight = new_flight(seed, _ROOM + 2 * scenario.pools + sampled)
        threshold = scenario.initial_threshold if scenario.policy == "threshold" else 0
        self._net["highest"] = max(tasks.max(), threshold)
        self._parties = new_parties(
            tasks, owners(tasks), _fall_at(scenario), threshold=threshold, sampled=sampled, levels=scenario.levels
        )
        total = int(tasks.sum())
        self._net["dispatched"] = self._net["begun"] = total
        self._open = opened(tasks, system.given.durations[:total], np.zeros_like(tasks))

    @property
    def arrivals(self) -> Network | None:
        """This, if sessions are given; None if their arrivals are Poisson."""
        return self if self._system.given.starts.size else None

    def end_phase(self, rules: Record, state: Record) -> None:
        """Do nothing: given sessions do not depend on the demand."""

    def begin_phase(self, rules: Record, state: Record) -> None:
        """Set the time of the next event, whatever the demand."""
        ends = float(self._open.due[0]) if state["total"] else math.inf
        state["next_time"] = min(ends, next_start(self._system.given, int(self._net["dispatched"])))

    @property
    def tasks(self) -> NDArray[np.int64]:
        """Tasks of each pool."""
        return self._parties.tasks.copy()

    @property
    def estimates(self) -> NDArray[np.int64]:
        """Tasks of each pool as the dispatcher estimates them; under power-of-d and random, those of time 0."""
        return self._parties.estimate.copy()

    @property
    def flying(self) -> int:
        """Tasks and messages on the way."""
        return int(self._net["flying"])

    def messages(self) -> dict[str, int]:
        """Return the messages so far, by kind: those of pools that turn a task away, and regular reports, too."""
        messages = self._system.messages()
        if self._system.code in (PolicyCode.JSQ, PolicyCode.THRESHOLD):
            messages["other"] += int(self._net["refusals"])
        return messages | {"other": messages["other"] + int(self._net["reports"])}

    def advance(self, until: float, budget: int) -> None:
        """Call the kernel once."""
        system = self._system
        delayed.advance(
            system.rules,
            system.state,
            system.book,
            system.streams,
            self._net,
            self._flight,
            self._parties,
            self._ranks,
            self._open.due,
            self._open.sessions,
            system.given,
            system.watch,
            until,
            budget,
        )

    def make_room(self) -> None:
        """Grow the arrays that are nearly full; the kernel returns before they overflow."""
        parties, used = self._parties, self.flying
        if self.arrivals is not None:
            self._open = with_room(self._open, int(self._system.state["total"]))
        if used + 2 * (parties.tasks.size + self._ranks.size) + 8 >= self._flight.due.size:
            self._flight = grown_flight(self._flight, used, int(self._net["head"]))
            self._net["head"] = 0
        levels, tasks, polls = parties.first.size, parties.owner.size, parties.poll_free.size
        if int(self._net["highest"]) + 8 >= levels:
            levels *= 2
        if int(self._system.state["total"]) + 8 >= tasks:
            tasks *= 2
        if polls and int(self._net["polls"]) + 8 >= polls:
            polls *= 2
        if (levels, tasks, polls) != (parties.first.size, parties.owner.size, parties.poll_free.size):
            used = int(self._net["polls"])
            self._parties = grown_parties(parties, levels=levels, tasks=tasks, polls=polls, used=used)


def _fall_at(scenario: Scenario) -> NDArray[np.int64]:
    """Return how many pools with room may have the threshold when it falls, by the number of full pools."""
    if scenario.rule is None:
        return np.zeros(1, np.int64)
    full = 0 if scenario.capacity is None else scenario.pools
    return np.array([scenario.rule.fall_at(scenario.pools - pools) for pools in range(full + 1)], np.int64)
