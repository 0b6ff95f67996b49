"""The result of a demo run, and its verdict: sentences that follow from the numbers, good or bad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from evenly.live.admin.schema import StateView
from evenly.live.demo.admin_client import messages_per_session, resync_per_session
from evenly.live.demo.balance import Balance
from evenly.live.demo.plan import POOLS, Plan, Window

CLOSE = 0.10  # largest relative difference of two spreads that are called equal
MOSTLY = 0.90  # share of the time near the optimum from which the threshold counts as learned
MAX_MESSAGES = 2.0  # per session. Paper: Sec. 2.1


@dataclass(frozen=True)
class PhaseReport:
    """The measured end of one phase."""

    window: Window
    thresholds: tuple[int, ...]  # polled every half second
    evenly: Balance
    ideal: Balance
    rival: Balance

    @property
    def sides(self) -> dict[str, Balance]:
        """The three balancers by their names in JSON."""
        return {"evenly": self.evenly, "jsq": self.ideal, "least_request": self.rival}

    def share_within(self, distance: int) -> float:
        """Return the share of the time with the threshold at most `distance` from the optimum."""
        return fmean(abs(threshold - self.window.optimum) <= distance for threshold in self.thresholds)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the phase."""
        return {
            "load": self.window.load,
            "optimum": self.window.optimum,
            "threshold": {
                "final": self.thresholds[-1],
                "mean": fmean(self.thresholds),
                "at_optimum": self.share_within(0),
                "within_one": self.share_within(1),
            },
            "spread": {name: side.spread for name, side in self.sides.items()},
            "max_tasks": {name: side.max_tasks for name, side in self.sides.items()},
        }


@dataclass(frozen=True)
class Outcome:
    """The numbers of started and failed sessions of one balancer."""

    started: int
    failed: int


@dataclass(frozen=True)
class Report:
    """All measurements of a run."""

    plan: Plan
    phases: tuple[PhaseReport, ...]
    evenly: Outcome
    rival: Outcome
    picker: StateView

    @property
    def failed(self) -> int:
        """Failed sessions of both balancers."""
        return self.evenly.failed + self.rival.failed

    def mean(self, figure: Callable[[PhaseReport], float]) -> float:
        """Average a figure over the phases, which have equal length."""
        return fmean(map(figure, self.phases))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `evenly demo --json`."""
        messages = self.picker.messages
        return {
            "pools": POOLS,
            "seconds": self.plan.seconds,
            "seed": self.plan.seed,
            "phases": [phase.to_dict() for phase in self.phases],
            "spread": self._means(lambda side: side.spread),
            "max_tasks": self._means(lambda side: side.max_tasks),
            "messages": {
                "green": messages.green,
                "yellow": messages.yellow,
                "resync": messages.resync,
                "per_session": messages_per_session(self.picker),
                "resync_per_session": resync_per_session(self.picker),
            },
            "sessions": {
                "evenly": {"started": self.evenly.started, "failed": self.evenly.failed},
                "least_request": {"started": self.rival.started, "failed": self.rival.failed},
                "unpicked": self.picker.unpicked_sessions,
            },
            "verdict": verdict(self),
        }

    def _means(self, figure: Callable[[Balance], float]) -> dict[str, float]:
        names = self.phases[0].sides
        return {name: fmean(figure(phase.sides[name]) for phase in self.phases) for name in names}


def verdict(report: Report) -> list[str]:
    """Describe the run in plain words, one or two sentences per subject."""
    return [
        _threshold_words(report),
        _ideal_words(report),
        _rival_words(report),
        _message_words(report),
        _session_words(report),
    ]


def _threshold_words(report: Report) -> str:
    final = listed([phase.thresholds[-1] for phase in report.phases])
    optimum = listed([phase.window.optimum for phase in report.phases])
    within = report.mean(lambda phase: phase.share_within(1))
    ends = f"it ended the phases at {final}, where {optimum} is best"
    since = f"from {report.phases[0].window.begin:.0f} s after each change onwards"
    if within >= MOSTLY:
        close = f"was at most one off {percent(within)} of the time"
        return f"The threshold followed the load: {ends}, and {since} it {close}."
    off = f"was more than one off {percent(1 - within)} of the time"
    return f"The threshold did not follow the load: {ends}, and {since} it {off}."


def _ideal_words(report: Report) -> str:
    ours = report.mean(lambda phase: phase.evenly.spread)
    ideal = report.mean(lambda phase: phase.ideal.spread)
    numbers = f"spread {ours:.2f} against {ideal:.2f} for join-the-shortest-queue"
    if ours <= (1 + CLOSE) * ideal:
        return f"Sessions were as even as the ideal: {numbers} on the same visits."
    return f"Sessions were {percent(ours / ideal - 1)} less even than the ideal: {numbers} on the same visits."


def _rival_words(report: Report) -> str:
    ours = report.mean(lambda phase: phase.evenly.spread)
    rival = report.mean(lambda phase: phase.rival.spread)
    full = report.mean(lambda phase: phase.evenly.max_tasks)
    rival_full = report.mean(lambda phase: phase.rival.max_tasks)
    pools = f"the fullest pool had {rival_full:.1f} sessions on average, here {full:.1f}"
    if rival > (1 + CLOSE) * ours:
        return (
            f"Envoy's own least-request was {rival / ours:.1f} times as uneven, with spread {rival:.2f}: {pools}."
        )
    if ours > (1 + CLOSE) * rival:
        return f"Envoy's own least-request was more even, with spread {rival:.2f}: {pools}."
    return f"Envoy's own least-request was about as even, with spread {rival:.2f}: {pools}."


def _message_words(report: Report) -> str:
    each, resync = messages_per_session(report.picker), resync_per_session(report.picker)
    bound = "at most two are needed" if each <= MAX_MESSAGES else "more than the expected maximum of two"
    return (
        f"A session took {each:.2f} messages between pools and picker ({bound}). "
        f"Changes of the threshold cost another {resync:.2f} per session."
    )


def _session_words(report: Report) -> str:
    total = report.evenly.started + report.rival.started
    if report.failed:
        words = (
            f"{report.failed:,} of {total:,} sessions failed: {report.evenly.failed:,} here, "
            f"{report.rival.failed:,} with least-request."
        )
    else:
        words = f"None of {total:,} sessions failed."
    if report.picker.unpicked_sessions:
        words += f" For {report.picker.unpicked_sessions:,} of them Envoy did not wait for the picker's answer."
    return words


def listed(numbers: Sequence[object]) -> str:
    """Return things as words: "5, 10 and 2"."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def percent(share: float) -> str:
    """Return a share as words: "12 %"."""
    return f"{100 * share:.0f} %"
