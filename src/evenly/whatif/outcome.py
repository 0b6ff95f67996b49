"""What one policy would have done with the sessions of a log, or what really happened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.frames import ReadOnly, percent
from evenly.policies import POLICIES
from evenly.sim.kernels.given import CROWDED
from evenly.sim.tally import Averages, Tally
from evenly.whatif.numbers import counted
from evenly.whatif.replay import Replay
from evenly.whatif.sizing import Sizing

OBSERVED = "observed"
LEAST_CONN = "jsq"  # what operators call it; with full knowledge, as a single proxy has
CROWDED_WORDS = f"at least {CROWDED} sessions more than the average over servers, rounded up"
_AS_EVEN, _NEARLY, _SLIGHTLY = 0.1, 0.5, 1.5  # sessions on the fullest server, beyond those with perfect balance

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome(ReadOnly):
    """The numbers of one policy, over the measured window.

    policy, label: the policy's name, and the name with its parameters; "observed" for what really happened.
    servers: servers in this replay.
    averages, window: time averages and the raw records, as of a simulation.
    highest: most sessions on a server at any time.
    balanced: sessions on the fullest server with perfect balance, on average over time.
    crowded_share: share of sessions, by time, on crowded servers, which have at least two sessions more than the
        average over servers, rounded up.
    counts_messages: whether the messages are known; not those of what really happened.
    times, spread_at, fullest_at, mean_at: the averages over each part of the replay, and where the parts end,
        in seconds since the log's beginning.
    sizing: the servers needed for a limit; None without one.
    """

    policy: str
    label: str
    servers: int
    alpha: float | None
    averages: Averages
    window: Tally
    highest: int
    balanced: float
    crowded_share: float
    final_threshold: int | None
    counts_messages: bool
    times: Floats
    spread_at: Floats
    fullest_at: Floats
    mean_at: Floats
    sizing: Sizing | None = None

    @property
    def spread(self) -> float:
        """Standard deviation of sessions over servers, on average over time."""
        return self.averages.spread

    @property
    def max_tasks(self) -> float:
        """Sessions on the fullest server, on average over time."""
        return self.averages.max_tasks

    @property
    def messages_per_session(self) -> float | None:
        """Messages between servers and balancer, per session; None if they are not known."""
        return self.averages.messages_per_task if self.counts_messages else None

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        beyond = self.max_tasks - self.balanced
        grade = "Uneven"
        for word, most in (
            ("As even as it gets", _AS_EVEN),
            ("Nearly even", _NEARLY),
            ("Slightly uneven", _SLIGHTLY),
        ):
            if beyond < most:
                grade = word
                break
        crowded = percent(self.crowded_share).replace("< ", "less than ") if self.crowded_share > 0 else "none"
        sentence = (
            f"{grade}: the fullest server has {self.max_tasks:.1f} sessions on average, "
            f"{self.balanced:.1f} with perfect balance, and {crowded} of the sessions are on crowded servers"
        )
        return f"{sentence}{self._sizing_words()}."

    def _sizing_words(self) -> str:
        if self.sizing is None:
            return ""
        limit, needed = self.sizing.limit, self.sizing.servers
        if needed is None:
            return f"; no number of servers within reach keeps it to {limit} per server"
        instead = f" instead of {self.servers}" if needed != self.servers else ", as many as there are"
        return f"; at most {limit} per server takes {counted(needed, 'server')}{instead}"

    def with_sizing(self, sizing: Sizing) -> Outcome:
        """Return the same outcome with the servers needed for a limit."""
        return replace(self, sizing=sizing)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        window, means = self.window, self.averages
        return {
            "policy": self.policy,
            "label": self.label,
            "servers": self.servers,
            "alpha": self.alpha,
            "mean_tasks": means.mean_tasks,
            "spread": {"mean": self.spread},
            "max_tasks": {
                "mean": self.max_tasks,
                "highest": self.highest,
                "balanced": self.balanced,
                "distribution": means.max_tasks_distribution.tolist(),
            },
            "crowded_share": self.crowded_share,
            "messages": self._messages_dict(),
            "threshold": None if means.threshold is None else self._threshold_dict(),
            "lost_tasks": window.lost_tasks,
            "lost_share": means.lost_share,
            "sizing": None if self.sizing is None else self.sizing.to_dict(),
            "verdict": self.verdict,
        }

    def _messages_dict(self) -> dict[str, Any] | None:
        if not self.counts_messages:
            return None
        kinds = ("green", "yellow", "resync", "other")
        return {
            **{kind: getattr(self.window, kind) for kind in kinds},
            "tasks": self.window.arrivals,
            "per_task": self.averages.messages_per_task,
        }

    def _threshold_dict(self) -> dict[str, Any]:
        share = self.averages.threshold_share
        return {
            "final": self.final_threshold,
            "mean": self.averages.threshold,
            "time_at": {str(level): part for level, part in share.items()},
            "changes": self.window.change_count,
        }


def new_outcome(replay: Replay, grid: Floats, *, balanced: float, observed: bool = False) -> Outcome:
    """Return the outcome of a replay, with its averages between the times of the grid."""
    scenario, info = replay.scenario, replay.scenario.info
    places = np.searchsorted(replay.stops, grid)
    lengths = np.diff(grid)

    def parts(integral: Floats) -> Floats:
        return np.asarray(np.diff(integral[places]) / lengths)

    highest = np.flatnonzero(replay.window.max_time > 0)
    return Outcome(
        policy=OBSERVED if observed else info.name,
        label=OBSERVED if observed else scenario.label,
        servers=scenario.pools,
        alpha=None if scenario.alpha is None else float(scenario.alpha),
        averages=replay.averages,
        window=replay.window,
        highest=int(highest[-1]) if highest.size else 0,
        balanced=balanced,
        crowded_share=replay.crowded_share,
        final_threshold=replay.final_threshold,
        counts_messages=not observed and (info.name in POLICIES or replay.window.other > 0),
        times=grid[1:] - grid[0],
        spread_at=parts(replay.spread),
        fullest_at=parts(replay.fullest),
        mean_at=parts(replay.sessions) / scenario.pools,
    )
