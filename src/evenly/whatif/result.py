"""The answer to "what if": every policy on the same sessions, and what really happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.frames import Table, Tabular, percent
from evenly.logs import BadLine
from evenly.whatif.numbers import counted
from evenly.whatif.outcome import OBSERVED, Outcome
from evenly.whatif.sizing import Sizing
from evenly.whatif.window import Window

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenly.plots.whatif import Line, Span

_TIMELINE_UNITS = {
    "time": "seconds since the log's beginning, where a part of the replay ends",
    "policy": "the policy with its parameters, or observed",
    "spread": "standard deviation of sessions over servers",
    "fullest": "sessions on the fullest server",
    "mean": "sessions per server",
}


@dataclass(frozen=True, kw_only=True)
class LogFacts:
    """What was read: the log's name and format, its lines, and what was wrong with it."""

    name: str
    format: str
    sessions: int
    lines: int
    skipped: int
    bad_lines: tuple[BadLine, ...]
    notes: tuple[str, ...]
    servers_named: int
    unnamed: int  # sessions without a server, in a log that names servers
    origin: float | None  # seconds since 1970 UTC of time 0; None without a wall clock
    utc: bool  # whether the hours of the day are those of UTC


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WhatIf(Tabular):
    """The policies on the sessions of a log: one outcome each, in the order of `policies`.

    log: what was read.
    servers, servers_from: the servers of each replay, and where that number comes from.
    window: the part of the log that is measured.
    seed, delay, limit: as given to `replay_log`.
    mean_sessions, highest_sessions: open sessions on all servers together, on average and at most.
    mean_duration: of the sessions that begin in the window, in seconds.
    policies: what each policy would have done.
    observed: what really happened; None if the log names no servers.
    least_conn: the servers that jsq needs for the limit, whether it is among the policies or not; None without a
        limit.
    notes: sentences about what was assumed.
    """

    log: LogFacts
    servers: int
    servers_from: str
    window: Window
    seed: int
    delay: float | str
    limit: int | None
    mean_sessions: float
    highest_sessions: int
    mean_duration: float
    policies: tuple[Outcome, ...]
    observed: Outcome | None
    least_conn: Sizing | None
    notes: tuple[str, ...]

    def __getitem__(self, policy: str) -> Outcome:
        """Return the outcome of a policy, by its name; "observed" is what really happened."""
        return next(each for each in self.outcomes if each.policy == policy)

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What really happened, if that is known, then the policies."""
        return (*([] if self.observed is None else [self.observed]), *self.policies)

    def columns(self) -> Mapping[str, Any]:
        """Return one row per policy, and one for what really happened."""
        rows = self.outcomes
        found = {
            "policy": [each.label for each in rows],
            "servers": np.array([each.servers for each in rows]),
            "spread": np.array([each.spread for each in rows]),
            "max_tasks": np.array([each.max_tasks for each in rows]),
            "highest": np.array([each.highest for each in rows]),
            "crowded_share": np.array([each.crowded_share for each in rows]),
            "messages_per_session": np.array([_number(each.messages_per_session) for each in rows]),
        }
        if self.limit is not None:
            needed = [None if each.sizing is None else each.sizing.servers for each in rows]
            found["servers_needed"] = np.array([_number(each) for each in needed])
        return found

    @property
    def timeline(self) -> Table:
        """One row per policy and part of the replay: spread, fullest server and sessions per server."""
        rows = self.outcomes
        return Table(
            {
                "policy": [each.label for each in rows for _ in each.times],
                "time": np.concatenate([each.times for each in rows]),
                "spread": np.concatenate([each.spread_at for each in rows]),
                "fullest": np.concatenate([each.fullest_at for each in rows]),
                "mean": np.concatenate([each.mean_at for each in rows]),
            },
            _TIMELINE_UNITS,
        )

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the sessions on the fullest server over time, one line per policy, on `ax` or on a new figure."""
        from evenly.plots.style import axes_or_new
        from evenly.plots.whatif import draw_fullest

        return draw_fullest(axes_or_new(ax), self._lines(), self._span())

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw the picture of `evenly whatif --plot`: fullest server and spread over time."""
        from evenly.plots.style import figure_or_new
        from evenly.plots.whatif import draw_timeline

        return draw_timeline(figure_or_new(figure, 8.0, 6.4), self._lines(), self._span(), title=self._headline())

    def _lines(self) -> list[Line]:
        from evenly.plots.whatif import Line

        return [
            Line(each.label, each.times, each.fullest_at, each.spread_at, each.mean_at) for each in self.outcomes
        ]

    def _span(self) -> Span:
        from evenly.plots.whatif import Span

        return Span(warmup=self.window.warmup, until=self.window.until, limit=self.limit)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `evenly whatif --json`."""
        log = self.log
        return {
            "log": log.name,
            "format": log.format,
            "sessions": log.sessions,
            "lines": log.lines,
            "skipped": log.skipped,
            "bad_lines": [{"line": bad.number, "text": bad.text, "reason": bad.reason} for bad in log.bad_lines],
            "servers": self.servers,
            "seed": self.seed,
            "delay": self.delay,
            "window": self.window.to_dict(),
            "mean_sessions": self.mean_sessions,
            "highest_sessions": self.highest_sessions,
            "mean_duration": self.mean_duration,
            "policies": [each.to_dict() for each in self.policies],
            OBSERVED: None if self.observed is None else self.observed.to_dict(),
            "limit": self.limit,
            "least_conn": None if self.least_conn is None else self.least_conn.to_dict(),
            "notes": [*log.notes, *self.notes],
        }

    def _headline(self) -> str:
        return (
            f"{counted(self.log.sessions, 'session')} on {counted(self.servers, 'server')}, "
            f"{self.mean_sessions / self.servers:.1f} per server on average"
        )

    def _rows(self) -> Sequence[tuple[str, str]]:
        return [
            (
                each.label,
                f"spread {each.spread:.3f}, fullest {each.max_tasks:.2f}, crowded {percent(each.crowded_share)}",
            )
            for each in self.outcomes
        ]


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
