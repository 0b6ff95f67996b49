"""The result of a demo run, and its verdict: sentences that follow from the numbers, good or bad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenly.live.demo.fleet.counts import Counts
from evenly.live.demo.fleet.plan import DISPATCHERS, REPORT_INTERVAL_S, FleetPlan
from evenly.live.demo.fleet.recovery import Recovery
from evenly.live.demo.fleet.traffic import Tally
from evenly.live.demo.plan import POOLS
from evenly.live.demo.window_report import (
    CLOSE,
    MeanBalance,
    WindowReport,
    ideal_words,
    listed,
    mean_sides,
    threshold_words,
)

MAX_MESSAGES = 2.0  # per session. Paper: Sec. 2.1


@dataclass(frozen=True, kw_only=True)
class FleetReport:
    """All measurements of a run. `delay` is half the mean time of a pick in seconds; the models use it."""

    plan: FleetPlan
    windows: tuple[WindowReport, ...]
    delay: float
    tally: Tally
    counts: Counts
    expired: int
    released: int
    recoveries: tuple[Recovery, ...]

    @property
    def complete(self) -> bool:
        """Whether no visit was lost, every window was measured and every killed part came back."""
        measured = len(self.windows) == len(self.plan.windows)
        return measured and not self.tally.lost and all(each.back_at is not None for each in self.recoveries)

    @property
    def sides(self) -> dict[str, MeanBalance]:
        """The mean balance of the fleet and of the two models."""
        return mean_sides(self.windows)

    def per_session(self, messages: int) -> float:
        """Return the number of messages per session."""
        return messages / max(self.tally.sessions, 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `evenly demo fleet --json`."""
        tally = self.tally
        return {
            "pools": POOLS,
            "dispatchers": DISPATCHERS,
            "seconds": self.plan.seconds,
            "seed": self.plan.seed,
            "delay": self.delay,
            "report_interval": REPORT_INTERVAL_S,
            "windows": [_window(each) for each in self.windows],
            "spread": {name: side.spread for name, side in self.sides.items()},
            "max_tasks": {name: side.max_tasks for name, side in self.sides.items()},
            "messages": {
                **self.counts.messages,
                "per_session": self.per_session(self.counts.tokens),
                "others_per_session": self.per_session(self.counts.others),
            },
            "sessions": {
                "visits": tally.visits,
                "begun": tally.sessions,
                "cut": tally.cut,
                "lost": tally.lost,
            },
            "picks": {
                "granted": len(tally.pick_s),
                "other_dispatcher": tally.elsewhere,
                "unreachable_pool": tally.unreachable,
                "refused": dict(tally.refused),
            },
            "places": {"expired": self.expired, "released": self.released},
            "killed": [_recovery(each) for each in self.recoveries],
            "verdict": fleet_verdict(self),
        }


def _window(report: WindowReport) -> dict[str, Any]:
    return {"begin": report.window.begin, "end": report.window.end, **report.to_dict()}


def _recovery(recovery: Recovery) -> dict[str, Any]:
    return {
        "part": recovery.name,
        "killed_at": recovery.killed_at,
        "started_at": recovery.started_at,
        "back_at": recovery.back_at,
        "seconds_to_return": recovery.seconds_to_return,
    }


def fleet_verdict(report: FleetReport) -> list[str]:
    """Describe the run in plain words, one or two sentences per subject."""
    ours, jsq = report.sides["evenly"], report.sides["jsq"]
    late = f", with every message {1000 * report.delay:.1f} ms late, half the mean time of a pick here"
    return [
        threshold_words(report.windows, times="measured times"),
        ideal_words(ours.spread, jsq.spread, late),
        _stale_words(ours, report.sides["stale_reports"]),
        _message_words(report),
        _kill_words(report),
        _return_words(report),
        _lost_words(report),
    ]


def _stale_words(ours: MeanBalance, stale: MeanBalance) -> str:
    name = f"With a report of each pool every {REPORT_INTERVAL_S:g} s instead, the same visits"
    pools = (
        f"spread {stale.spread:.2f}, and {stale.max_tasks:.1f} sessions at the fullest pool on average, "
        f"here {ours.max_tasks:.1f}"
    )
    if stale.spread > (1 + CLOSE) * ours.spread:
        return f"{name} would be {stale.spread / ours.spread:.1f} times as uneven: {pools}."
    if ours.spread > (1 + CLOSE) * stale.spread:
        return f"{name} would be more even: {pools}."
    return f"{name} would be about as even: {pools}."


def _message_words(report: FleetReport) -> str:
    counts = report.counts
    tokens, others = report.per_session(counts.tokens), report.per_session(counts.others)
    bound = "at most two are needed" if tokens <= MAX_MESSAGES else "more than the expected maximum of two"
    kinds = {name: count for name, count in counts.messages.items() if count and name not in ("green", "yellow")}
    each = listed([f"{report.per_session(count):.2f} {name}" for name, count in kinds.items()] or ["none"])
    return (
        f"A session took {tokens:.2f} messages for tokens from pools to dispatchers ({bound}), "
        f"and {others:.2f} others: {each}."
    )


def _kill_words(report: FleetReport) -> str:
    tally = report.tally
    refused = sum(tally.refused.values())
    reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(tally.refused.items()))
    names = listed([each.name for each in report.recoveries])
    return (
        f"At {report.plan.kill_at:.0f} s, {names} were killed with SIGKILL: {_count(tally.cut, 'session')} broke, "
        f"{_count(tally.unreachable, 'picked pool')} did not answer, {_count(tally.elsewhere, 'pick')} went to "
        f"the other dispatcher, and {_count(refused, 'pick')} failed{f' ({reasons})' if refused else ''}."
    )


def _return_words(report: FleetReport) -> str:
    back = [each for each in report.recoveries if each.seconds_to_return is not None]
    gone = [each.name for each in report.recoveries if each.seconds_to_return is None]
    parts = []
    if back:
        times = listed([f"{each.name} after {each.seconds_to_return:.1f} s" for each in back])
        parts.append(f"Started again at {report.plan.restart_at:.0f} s, they served again: {times}.")
    if gone:
        parts.append(f"Not back until the end: {listed(gone)}.")
    return " ".join(parts)


def _lost_words(report: FleetReport) -> str:
    tally = report.tally
    unused = (
        f"No client came in time for {_count(report.expired, 'place')}, and {_count(report.released, 'place')} "
        f"{'was' if report.released == 1 else 'were'} given back."
    )
    if tally.lost:
        return f"{tally.lost:,} of {tally.visits:,} visits were lost. {unused}"
    again = f"; {_count(tally.cut, 'client')} of broken sessions went on at other pools" if tally.cut else ""
    return f"None of {tally.visits:,} visits was lost{again}. {unused}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
