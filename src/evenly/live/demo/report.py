"""The result of a demo run, and its verdict: sentences that follow from the numbers, good or bad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenly.live.admin.schema import StateView
from evenly.live.demo.plan import ENVOYS, POOLS, RIVAL, SELECTION_METHOD, Plan
from evenly.live.demo.window_report import (
    CLOSE,
    MeanBalance,
    WindowReport,
    ideal_words,
    mean_sides,
    threshold_words,
)


@dataclass(frozen=True)
class Outcome:
    """The numbers of started and failed sessions of one balancer."""

    started: int
    failed: int


@dataclass(frozen=True)
class Report:
    """All measurements of a run."""

    plan: Plan
    phases: tuple[WindowReport, ...]
    evenly: Outcome
    rival: Outcome
    picker: StateView

    @property
    def failed(self) -> int:
        """Failed sessions of both balancers."""
        return self.evenly.failed + self.rival.failed

    @property
    def sides(self) -> dict[str, MeanBalance]:
        """The mean balance of each side."""
        return mean_sides(self.phases)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `evenly demo --json`."""
        messages = self.picker.messages
        picks = max(sum(self.picker.picks.values()), 1)
        return {
            "pools": POOLS,
            "envoys": ENVOYS,
            "selection_method": SELECTION_METHOD,
            "seconds": self.plan.seconds,
            "seed": self.plan.seed,
            "phases": [phase.to_dict() for phase in self.phases],
            "spread": {name: side.spread for name, side in self.sides.items()},
            "max_tasks": {name: side.max_tasks for name, side in self.sides.items()},
            "messages": {
                "green": messages.green,
                "yellow": messages.yellow,
                "resync": messages.resync,
                "per_session": (messages.green + messages.yellow) / picks,
                "resync_per_session": messages.resync / picks,
            },
            "sessions": {
                "evenly": {"started": self.evenly.started, "failed": self.evenly.failed},
                RIVAL: {"started": self.rival.started, "failed": self.rival.failed},
                "unpicked": self.picker.unpicked_sessions,
            },
            "verdict": verdict(self),
        }


def verdict(report: Report) -> list[str]:
    """Describe the run in plain words, one or two sentences per subject."""
    ours, ideal = report.sides["evenly"], report.sides["jsq"]
    since = f"from {report.phases[0].window.begin:.0f} s after each change onwards "
    return [
        threshold_words(report.phases, times="phases", since=since),
        ideal_words(ours.spread, ideal.spread),
        _rival_words(ours, report.sides[RIVAL]),
        _session_words(report),
    ]


def _rival_words(ours: MeanBalance, rival: MeanBalance) -> str:
    if rival.spread > (1 + CLOSE) * ours.spread:
        result = f"{rival.spread / ours.spread:.1f} times as uneven"
    elif ours.spread > (1 + CLOSE) * rival.spread:
        result = "more even"
    else:
        result = "about as even"
    return (
        f"Envoy's own {RIVAL} with selection_method {SELECTION_METHOD} was {result}, with spread "
        f"{rival.spread:.2f}: the fullest pool had {rival.max_tasks:.1f} sessions on average, here "
        f"{ours.max_tasks:.1f}. It compares all pools, but each of the {ENVOYS} Envoys only knows its own "
        "sessions. With evenly, they share all counts."
    )


def _session_words(report: Report) -> str:
    total = report.evenly.started + report.rival.started
    if report.failed:
        words = (
            f"{report.failed:,} of {total:,} sessions failed: {report.evenly.failed:,} here, "
            f"{report.rival.failed:,} with {RIVAL}."
        )
    else:
        words = f"None of {total:,} sessions failed."
    if report.picker.unpicked_sessions:
        words += f" For {report.picker.unpicked_sessions:,} of them Envoy did not wait for the picker's answer."
    return words
