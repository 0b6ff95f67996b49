"""The part of a log that is measured, and what the log leaves out at its ends.

A log begins and ends somewhere. A log of complete sessions lacks those that were open at its beginning. A log that
is written when sessions end shows some that began before it, and lacks those that were open at its end. Near the
ends, a replay therefore has fewer sessions than there were. If D is the duration of a session, the share of open
sessions that are missing a time w after the beginning is E[(D - w)+] / E[D] in a steady system, and likewise w
before the end. The measured part leaves out the time in which it is more than `MISSING`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.inputs import number_from
from evenly.logs import SessionLog
from evenly.whatif.numbers import seconds

MISSING = 0.01  # share of the open sessions
_MOST = 0.25  # share of the log that is left out at each end

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Window:
    """The time that is measured.

    begin: where the log begins: at its first start, or at the first end if lines are written when sessions end;
        in the seconds of the log's starts.
    warmup, until: the ends of the measured time, in seconds since the log's beginning.
    warmup_chosen, until_chosen: True if they were not given.
    sessions: sessions that begin in it.
    margin: seconds after which all but 1 % of the sessions that are open have begun.
    short: True if the log is too short for that margin, so that more is missing at its ends.
    began_before: sessions that began before the log's first line; 0 unless lines are written when sessions end.
    missing: estimate of the sessions that the log leaves out: those open at its end if lines are written when
        sessions end, those open at its beginning otherwise.
    """

    begin: float
    warmup: float
    until: float
    warmup_chosen: bool
    until_chosen: bool
    sessions: int
    margin: float
    short: bool
    began_before: int
    missing: int

    @property
    def first(self) -> float:
        """Where the measured time begins, in the seconds of the log's starts."""
        return self.begin + self.warmup

    @property
    def last(self) -> float:
        """Where the measured time ends, in the seconds of the log's starts."""
        return self.begin + self.until

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return dict(vars(self))


def margin_of(durations: Floats) -> float:
    """Return the time w with E[(D - w)+] = `MISSING` * E[D]."""
    ascending = np.sort(durations)
    left = np.cumsum(ascending[::-1])[::-1]  # the sum from each on
    count = np.arange(ascending.size, 0, -1)
    allowed = MISSING * left[0]
    enough = np.flatnonzero(left - count * ascending <= allowed)
    first = int(enough[0])  # there is one: nothing is left beyond the longest
    return float(max((left[first] - allowed) / count[first], 0.0))


def is_complete(log: SessionLog) -> bool:
    """Return True for a recorded simulation: it knows its sessions at time 0, if only that there were none."""
    simulated = log.format == "evenly" and not log.has_clock and log.skipped == 0
    return log.open_at_start > 0 or (simulated and not log.written_at_end)


def choose_window(log: SessionLog, *, warmup: float | None = None, until: float | None = None) -> Window:
    """Return the window of a log: as given, else chosen from the durations.

    In a log that is complete, nothing is missing, and no warm-up is chosen.
    """
    complete = is_complete(log)
    ends = log.starts + log.durations
    begin, end = 0.0 if complete else float(log.starts[0]), float(log.starts[-1])
    if log.written_at_end:
        # A burst that is over before the first line: nothing is known to have begun before it.
        begin = float(ends.min()) if ends.min() < end else begin
        end = float(ends.max())
    margin = 0.0 if complete else margin_of(log.durations)
    short = margin > _MOST * (end - begin)
    margin = min(margin, _MOST * (end - begin))
    chosen = (min(end - margin, float(log.starts[-1])) if log.written_at_end else end) - begin
    first = margin if warmup is None else number_from("warmup", warmup, 0)
    last = chosen if until is None else number_from("until", until, 0)
    if first >= last:
        raise InputError(_empty(first, last, warmup is not None, until is not None, float(ends.max()) - begin))
    sessions = int(np.diff(np.searchsorted(log.starts, [begin + first, begin + last]))[0])
    if sessions == 0:
        raise InputError(
            f"No session begins from {seconds(first)} to {seconds(last)} seconds: "
            f"the log has starts from {seconds(log.starts[0] - begin)} to {seconds(log.starts[-1] - begin)}."
        )
    edge = begin + (last if log.written_at_end else first)
    open_then = int(np.count_nonzero((log.starts <= edge) & (ends > edge)))
    return Window(
        begin=begin,
        warmup=first,
        until=last,
        warmup_chosen=warmup is None,
        until_chosen=until is None,
        sessions=sessions,
        margin=margin,
        short=short,
        began_before=int(np.count_nonzero(log.starts < begin)) if log.written_at_end else 0,
        missing=0 if complete else open_then,
    )


def _empty(first: float, last: float, warmup_given: bool, until_given: bool, end: float) -> str:
    """Return why there is nothing to measure."""
    warmup, until = seconds(first), seconds(last)
    if warmup_given and until_given:
        return f"until must be after the warm-up, which ends at {warmup} seconds, not at {until}."
    if until_given:
        return f"until must be above {warmup} seconds, where the warm-up of this log ends, not {until}."
    if last <= 0:
        return "All sessions of this log begin at the same time: give the seconds to measure after it, with until."
    if warmup_given:
        return f"warmup must be below {until} seconds, where the measured part of this log ends, not {warmup}."
    return (
        f"The log covers {seconds(end)} seconds with sessions that last as long: nothing is left to measure. "
        "Give the part to measure with warmup and until, or a longer log."
    )
