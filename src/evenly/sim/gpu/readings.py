"""What the replications of a point recorded, as averages with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.sim.intervals import COLUMNS, CONFIDENCE, Parts
from evenly.sim.scenario import Scenario

VALUES = (
    "mean_tasks", "max_tasks", "spread", "imbalance", "messages_per_task", "resync_per_task", "threshold",
    "change_rate", "change_count", "without_token", "threshold_share",
)  # fmt: skip
_PER_TASK = ("messages_per_task", "resync_per_task")
_LEARNED = ("threshold", "change_rate", "threshold_share")  # of the threshold policy only


@dataclass(frozen=True)
class Reading:
    """The sums of a point, one per replication, and its time at each threshold. Times are in mean task times."""

    scenario: Scenario
    sums: NDArray[Any]
    threshold_time: NDArray[np.float64]

    @property
    def replications(self) -> int:
        """How many there were."""
        return len(self.sums)

    @property
    def events(self) -> int:
        """Arrivals and departures in all replications, warm-up included."""
        return int(self.sums["events"].sum() + self.sums["warmup_events"].sum())

    @property
    def overflowed(self) -> bool:
        """Whether a pool had more tasks than there are levels for: then nothing here is right."""
        return bool(self.sums["dropped"].any())

    def value(self, name: str) -> float | int | list[float] | None:
        """Return one of `VALUES`; None if the policy has no such thing."""
        if name in _LEARNED and self.scenario.info.name != "threshold":
            return None
        if name == "threshold_share":
            used = np.trim_zeros(self.threshold_time, "b")
            return list((used / used.sum()).tolist())
        if name == "change_count":
            return int(self.sums["changes"].sum())
        if name == "change_rate":
            return self._ratio(self.sums["changes"], self._time) * self.scenario.service_rate
        if name == "without_token":
            return int(self.sums["without_token"].sum())
        return self._ratio(self._totals[name], self._totals["arrivals" if name in _PER_TASK else "time"])

    def half_width(self, name: str) -> float | None:
        """Return half the length of a value's interval; None if there are too few replications or events."""
        if self.replications < 2 or self.value(name) is None:
            return None
        width = self._parts.half_widths([name], 1 - CONFIDENCE)[name]
        return None if math.isnan(width) else width

    @property
    def _time(self) -> NDArray[np.float64]:
        time: NDArray[np.float64] = self.sums["time"]
        return time

    @staticmethod
    def _ratio(numbers: NDArray[Any], over: NDArray[Any]) -> float:
        whole = float(over.sum())
        return float(numbers.sum()) / whole if whole else 0.0

    @cached_property
    def _totals(self) -> dict[str, NDArray[np.float64]]:
        """The columns of `Parts`, as far as there are any."""
        sums = self.sums
        found = {name: sums[name].astype(float) for name in ("time", "arrivals", "max_tasks", "spread")}
        found |= {name: sums[name].astype(float) for name in ("threshold", "imbalance", "without_token")}
        found["mean_tasks"] = sums["tasks"] / self.scenario.pools
        found["messages_per_task"] = self._messages().astype(float)
        found["resync_per_task"] = sums["resync"].astype(float)
        return found

    def _messages(self) -> NDArray[Any]:
        """Return the messages of each replication, as `evenly.sim.system.System.messages` counts them."""
        sums, policy = self.sums, self.scenario.info.name
        departures: NDArray[Any] = sums["events"] - sums["arrivals"]
        if policy == "jsq":
            return departures
        if policy == "power-of-d":
            asked: NDArray[Any] = 2 * self.scenario.sampled * sums["arrivals"]
            return asked
        tokens: NDArray[Any] = sums["green"] + sums["yellow"]
        return tokens

    @cached_property
    def _parts(self) -> Parts:
        """Each replication as one part. The usual value of the fullest pool is the one next to its mean."""
        nothing = np.zeros(self.replications)
        columns = [self._totals.get(name, nothing) for name in COLUMNS]
        fullest = self.value("max_tasks")
        assert isinstance(fullest, float)
        modes = {"max_tasks": round(fullest), "threshold": int(self.threshold_time.argmax())}
        return Parts(np.stack(columns, axis=-1)[:, np.newaxis, :], modes)
