"""What the kernels of one replication work on: its rules, its state, its records and its random numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenly.sim.given import GivenSessions
from evenly.sim.kernels.given import new_watch, nothing_given
from evenly.sim.kernels.ledger import (
    NO_LIMIT,
    NO_THRESHOLD,
    RULES,
    STATE,
    PolicyCode,
    grown,
    new_book,
)
from evenly.sim.kernels.rng import new_streams
from evenly.sim.limits import MAX_LEVELS
from evenly.sim.scenario import Scenario

_CODES = {
    **{code.name.lower().replace("_", "-"): code for code in PolicyCode},
    "jiq": PolicyCode.JBT,  # with threshold 1
}
_PATH_BUFFER = 4096
MAX_PATH = 10**6

Path = tuple[NDArray[np.float64], NDArray[np.int64]]


class System:
    """Records of `evenly.sim.kernels.ledger` and the streams of a seed. `keep_path` keeps the threshold's path.

    If sessions are given, they are not drawn. `keep_pools` writes down where each goes; `observed` lets each go
    where it did go, whatever the policy.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: np.random.SeedSequence,
        *,
        mean_holding: bool = False,
        keep_path: bool = False,
        given: GivenSessions | None = None,
        keep_pools: bool = False,
        observed: bool = False,
    ) -> None:
        self.scenario = scenario
        self.code = PolicyCode.OWN if scenario.info.own else _CODES.get(scenario.info.name)
        if observed:
            self.code = PolicyCode.OBSERVED
        self.given = nothing_given() if given is None else given.arrays(kept=keep_pools, observed=observed)
        self.streams = new_streams(seed, mean_holding=mean_holding)
        self.rules = np.zeros(1, RULES)[0]
        self.state = np.zeros(1, STATE)[0]
        self._path: list[Path] = []
        self._path_length = 0
        self._set_rules(mean_holding)
        counts = scenario.at_least_at_start()
        learns = scenario.rule is not None or scenario.info.own
        self.book = new_book(counts, scenario.levels, _PATH_BUFFER if keep_path and learns else 0)
        self._set_state(counts)
        self.watch = new_watch(counts, int(self.state["total"]), scenario.pools)

    def _set_rules(self, mean_holding: bool) -> None:
        scenario, rules = self.scenario, self.rules
        rules["policy"] = -1 if self.code is None else self.code
        rules["pools"] = scenario.pools
        rules["capacity"] = NO_LIMIT if scenario.capacity is None else scenario.capacity
        rules["below"] = 1 if scenario.policy == "jiq" else scenario.initial_threshold
        rules["highest"] = NO_LIMIT if scenario.capacity is None else scenario.capacity - 1
        if scenario.rule is not None:
            rules["learning"] = 1
            rules["fall_at"] = scenario.rule.fall_at(scenario.pools)
        rules["mean_holding"] = mean_holding
        rules["returning"], rules["margin"] = scenario.sticky, scenario.margin
        rules["service_rate"] = scenario.service_rate

    def _set_state(self, counts: NDArray[np.int64]) -> None:
        levels = np.arange(counts.size)
        self.state["total"] = counts[1:].sum()
        self.state["squares"] = (2 * levels - 1)[1:] @ counts[1:]
        self.state["max_level"] = counts.size - 1
        learned = self.code == PolicyCode.THRESHOLD
        self.state["threshold"] = self.scenario.initial_threshold if learned else NO_THRESHOLD

    def messages(self) -> dict[str, int]:
        """Return the messages so far, by kind, if they arrive instantly and all pools have one size."""
        state, arrivals = self.state, int(self.state["arrivals"])
        other = 0
        if self.code == PolicyCode.JSQ:
            other = int(state["events"]) - arrivals  # departures
        elif self.code == PolicyCode.POWER_OF_D:
            other = 2 * self.scenario.sampled * (arrivals - int(state["kept"]))
        return {
            **{kind: int(state[kind]) for kind in ("green", "yellow", "resync")},
            "other": other,
        }

    def make_room(self, level: int = 0) -> None:
        """Grow the book if it is nearly full, have room for a level, and empty the buffer of the path."""
        state = self.state
        while max(state["max_level"], state["threshold"], level) + 8 >= self.book.at_least.size:
            if self.book.at_least.size > 4 * MAX_LEVELS:
                raise MemoryError(f"more than {4 * MAX_LEVELS} tasks in a pool")
            self.book = grown(self.book)
        self._keep_path()

    @property
    def path(self) -> Path:
        """Times and values of the threshold's changes."""
        self._keep_path()
        times, values = zip(*self._path, strict=True) if self._path else ((), ())
        return np.concatenate([*times, np.zeros(0)]), np.concatenate([*values, np.zeros(0, np.int64)])

    def _keep_path(self) -> None:
        """Move the path out of the kernel's buffer; only the first million changes are kept."""
        length = int(self.state["path_length"])
        if length and self._path_length < MAX_PATH:
            self._path.append((self.book.path_time[:length].copy(), self.book.path_value[:length].copy()))
            self._path_length += length
        self.state["path_length"] = 0
