"""What a replay assumed, in sentences."""

from __future__ import annotations

from evenly.logs import SessionLog
from evenly.policies import DEFAULT
from evenly.whatif.numbers import counted, seconds
from evenly.whatif.outcome import LEAST_CONN
from evenly.whatif.result import LogFacts, WhatIf
from evenly.whatif.sizing import TARGET, Sizing
from evenly.whatif.window import MISSING, Window

_LEAST_CONN_WORDS = f"{LEAST_CONN} (least_conn on one proxy)"
HOURS_NOTE = (
    "The busiest hour can need more servers than the whole log: "
    "the 0.1 % of the time that may be above the limit is shorter in an hour."
)


def notes_of(
    facts: LogFacts, window: Window, log: SessionLog, *, alpha: float | None, servers: int
) -> tuple[str, ...]:
    """Return the sentences about the window, the cut, the servers and the tuned alpha."""
    found = [*_window_notes(window, log)]
    if facts.unnamed:
        found.append(f"Sessions without a server, which the observed row leaves out: {facts.unnamed:,}.")
    if facts.servers_named and facts.servers_named != servers:
        named = f"The log names {counted(facts.servers_named, 'server')}"
        more = servers - facts.servers_named
        found.append(
            f"{named}; the observed row has {more:,} more, without sessions."
            if more > 0
            else f"{named}; the policies ran on {servers:,}."
        )
    if alpha is not None:
        found.append(f"alpha {alpha} is tuned for {counted(servers, 'server')} and the highest load.")
    return tuple(found)


def _window_notes(window: Window, log: SessionLog) -> list[str]:
    found = []
    warmup, until = seconds(window.warmup), seconds(window.until)
    left = f"all but {100 * MISSING:.0f} % of the open sessions"
    if window.warmup_chosen and window.warmup > 0:
        found.append(
            f"The first {warmup} s are warm-up: after that, {left} began within the log."
            if not window.short
            else f"Sessions last long compared with the log: only the first {warmup} s are warm-up."
        )
    if log.written_at_end:
        found.append(
            f"The log is written when sessions end. Sessions that began before its first line: "
            f"{window.began_before:,}; sessions open at its end, which are missing: about {window.missing:,}."
        )
        if window.until_chosen:
            found.append(f"The replay ends at {until} s: after that, too many sessions are missing.")
    elif window.missing:
        found.append(f"Sessions that were open when the log begins, which are missing: about {window.missing:,}.")
    if log.still_open:
        found.append(f"Sessions still open when the recording stopped, which end there: {log.still_open:,}.")
    return found


def answer_words(result: WhatIf) -> str:
    """Return the answer: the servers now, and those needed with the policy and with least_conn on one proxy.

    The policy is `threshold`, or the first one where that was not replayed. Without a limit, the fullest servers
    of the policies that were replayed are compared instead.
    """
    now = counted(result.log.servers_named or result.servers, "server")
    now += " now" if result.observed else ""
    policies = [each for each in result.policies if each.policy != LEAST_CONN]
    ours = next((each for each in policies if each.policy == DEFAULT), policies[0] if policies else None)
    if result.limit is not None:
        within = f"at most {counted(result.limit, 'session')} on each, {100 * TARGET:g} % of the time"
        needed = [] if ours is None else [f"{_needed(ours.sizing)} with {ours.label}"]
        needed.append(f"{_needed(result.least_conn)} with {_LEAST_CONN_WORDS}")
        return f"{now}. Needed for {within}: {'; '.join(needed)}."
    if result.observed:
        now += f", the fullest with {result.observed.max_tasks:.1f} sessions on average"
    shown = [] if ours is None else [(ours, ours.label)]
    shown += [(each, _LEAST_CONN_WORDS) for each in result.policies if each.policy == LEAST_CONN]
    parts = [now, *(f"{each.max_tasks:.1f} on the fullest with {words}" for each, words in shown)]
    return f"{'; '.join(parts)}. Give --limit N to find the servers needed for at most N sessions on each."


def _needed(sizing: Sizing | None) -> str:
    servers = None if sizing is None else sizing.servers
    return "more than were tried" if servers is None else f"{servers:,}"


def log_words(result: WhatIf) -> str:
    """Return what was read, in one line."""
    log = result.log
    skipped = f", {log.skipped:,} of {counted(log.lines, 'line')} skipped" if log.skipped else ""
    load = result.mean_sessions / result.servers
    return (
        f"{log.name}: {log.format}, {counted(log.sessions, 'session')}{skipped}; "
        f"{counted(result.servers, 'server')} ({result.servers_from}), {load:.2f} sessions per server on average, "
        f"{result.highest_sessions:,} in all at most"
    )


def window_words(result: WhatIf) -> str:
    """Return the measured part of the log, in one line."""
    window = result.window
    begin = "1 session begins" if window.sessions == 1 else f"{window.sessions:,} sessions begin"
    return (
        f"Averages from {seconds(window.warmup)} s to {seconds(window.until)} s, "
        f"where {begin}; a session lasts {result.mean_duration:,.4g} s on average"
    )


def hours_words(result: WhatIf) -> str:
    """Return the title of the servers needed by hour."""
    zone = "UTC" if result.log.utc else "the log's clock"
    return f"servers needed by hour of the day ({zone}), at most {counted(result.limit or 0, 'session')} on each"
