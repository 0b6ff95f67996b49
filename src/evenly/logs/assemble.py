"""From the lines of a log to its sessions: one per session, those that reached a server, in order."""

from __future__ import annotations

import numpy as np

from evenly.logs.collect import Collector, Gathered
from evenly.logs.parser import Parser
from evenly.logs.session_log import SessionLog

_ROUNDED_S = 2e-3  # starts and durations are often rounded to milliseconds


def assemble(collector: Collector, parser: Parser, notes: list[str]) -> SessionLog:
    """Return the sessions that were gathered. There must be one."""
    gathered = collector.gathered()
    by_end = _in_order_of_ends(gathered)
    sessions, merged = merge_repeated(gathered)
    if merged:
        notes.append(
            f"{_lines(merged, 'about a session', 'about sessions')} that other lines are about too, as a flush "
            "interval writes them: "
            "the last line of each session counts."
        )
    if parser.repeats and _looks_repeated(sessions):
        notes.append(
            "Most lines have the start and the server of another line, and no id: if Envoy has a flush interval, "
            "sessions count more than once. Log %STREAM_ID%."
        )
    if parser.whole_seconds:
        notes.append("The lines end at whole seconds: starts are up to a second early. Log $msec for exact ones.")
    sessions, unserved = _only_served(sessions) if parser.names_unserved else (sessions, 0)
    if unserved:
        reached = _lines(unserved, "a request", "requests")
        notes.append(f"{reached} that reached no server; {'it is' if unserved == 1 else 'they are'} left out.")
    sessions = sessions.only(np.argsort(sessions.starts, kind="stable"))
    has_clock = bool(collector.has_clock) and parser.clock
    earliest = float(sessions.starts[0])
    origin = earliest if has_clock else 0.0
    shift = earliest if has_clock or earliest < 0 else 0.0
    if not has_clock and earliest < 0:
        notes.append(f"The first session began {-earliest:g} seconds before the log's time 0; that is time 0 now.")
    used = np.unique(sessions.servers[sessions.servers >= 0])
    if not len(used) and parser.server_field:
        notes.append(
            f"No line names a server: log {parser.server_field} too, and what really happened is compared."
        )
    names = list(collector.server_names)
    codes = np.full(len(names) + 1, -1, np.int32)  # the last is for -1
    codes[used] = np.arange(len(used))
    return SessionLog(
        starts=sessions.starts - shift,
        durations=sessions.durations,
        origin=origin,
        servers=codes[sessions.servers] if len(used) else None,
        server_names=tuple(names[place] for place in used),
        format=parser.format,
        lines=collector.lines,
        skipped=collector.skipped,
        bad_lines=tuple(collector.bad_lines),
        notes=tuple(notes),
        written_at_end=by_end if parser.written_at_end is None else parser.written_at_end,
        has_clock=has_clock,
        utc_offset_known=has_clock and parser.utc_offset_known,
        open_at_start=_open_at_start(collector, parser, sessions),
        still_open=int(sessions.still_open.sum()),
    )


def _open_at_start(collector: Collector, parser: Parser, sessions: Gathered) -> int:
    """Return how many sessions were open at time 0; 0 if the log was tampered with, so that nothing is certain."""
    count = parser.open_at_start
    first = sessions.starts[:count]
    known = collector.skipped == 0 and len(first) == count and not first.any()
    return count if known and bool(np.all(sessions.servers[:count] >= 0)) else 0


def merge_repeated(sessions: Gathered) -> tuple[Gathered, int]:
    """Keep one line of each session that several lines are about; return how many were dropped.

    The line at the end of the session counts, else the longest. A session without a line at its end was still
    open when the log was cut, and lasts until then.
    """
    if not sessions.keys.any():
        return sessions, 0
    order = np.lexsort((sessions.durations, ~sessions.still_open, sessions.keys))
    keys = sessions.keys[order]
    last = np.append(keys[1:] != keys[:-1], True) | (keys == 0)
    kept = sessions.only(np.sort(order[last]))
    cut = float(np.max(sessions.starts + sessions.durations))
    lasted = np.maximum(kept.durations, cut - kept.starts)
    kept.durations = np.where(kept.still_open & (kept.keys != 0), lasted, kept.durations)
    return kept, len(order) - len(kept.starts)


def _in_order_of_ends(sessions: Gathered) -> bool:
    """Return True for lines in the order in which sessions ended, not in that of their starts."""
    ends = sessions.starts + sessions.durations
    return bool(np.any(np.diff(sessions.starts) < 0) and np.all(np.diff(ends) >= -_ROUNDED_S))


def _looks_repeated(sessions: Gathered) -> bool:
    """Return True if most lines without a key have the start and the server of another one."""
    pairs = np.column_stack((sessions.starts, sessions.servers))[sessions.keys == 0]
    if len(pairs) < 2:
        return False
    pairs = pairs[np.lexsort(pairs.T)]
    same = np.all(pairs[1:] == pairs[:-1], axis=1)
    return bool(2 * same.sum() >= len(pairs))


def _only_served(sessions: Gathered) -> tuple[Gathered, int]:
    """Leave out what reached no server, if other lines name one."""
    served = sessions.servers >= 0
    if not served.any():
        return sessions, 0
    return sessions.only(served), int((~served).sum())


def _lines(count: int, one: str, several: str) -> str:
    return f"1 line is {one}" if count == 1 else f"{count:,} lines are {several}"
