"""Our own log of sessions: `--record` writes it, and `read_log` reads it as the format "evenly".

Two lines of header, then one line per session, in CSV: start and duration in seconds, the server, and `open` if
the session had not ended when the recording did. Numbers are written as Python's `repr`, so that a recorded
simulation replays exactly. `open=N` in the header says that the first N sessions of a simulation were open at time
0, on the servers that they name, which are numbered from 0.
"""

from __future__ import annotations

MARK = "# evenly sessions 1"  # the version of the format comes last
CLOCKS = ("unix", "none")  # starts count from 1970 UTC, or from the beginning of a simulation
COLUMNS = "start,duration,server,state"
OPEN = "open"
LIVE = f"{MARK}, clock=unix"  # the first line of what a live recording writes


def record_header(*, clock: str = "unix", open_at_start: int = 0) -> str:
    """Return the header: what the file is, whether its starts are wall-clock times, and its columns."""
    already = f", open={open_at_start}" if open_at_start else ""
    return f"{MARK}, clock={clock}{already}\n{COLUMNS}\n"


def record_line(start: float, duration: float, server: str, *, still_open: bool = False) -> str:
    """Return the line of a session. `duration` runs up to the end of the recording if it is still open."""
    return f"{start!r},{duration!r},{quoted(server)},{OPEN if still_open else ''}\n"


def quoted(server: str) -> str:
    """Return the name as a CSV field on one line."""
    if not any(mark in server for mark in ',"\r\n'):
        return server
    name = " ".join(server.splitlines()).replace('"', '""')
    return f'"{name}"'
