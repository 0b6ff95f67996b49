"""Write the sessions of a simulation as a log of our own, which replays exactly."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from evenly.files import atomic_write
from evenly.logs.record import record_header
from evenly.sim.given import GivenSessions

_LINES = 50_000  # at a time


def save_sessions(path: str | Path, sessions: GivenSessions) -> None:
    """Write one line per session: its start, its duration and the number of its pool, which a lost one has not."""
    pools = [] if sessions.pools is None else sessions.pools.tolist()
    names = (str(pool) if pool >= 0 else "" for pool in pools)
    rows = (
        f"{start!r},{duration!r},{name},\n"
        for start, duration, name in zip(sessions.starts.tolist(), sessions.durations.tolist(), names, strict=True)
    )
    with atomic_write(Path(path)) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write(record_header(clock="none", open_at_start=sessions.open_at_start))
        while lines := "".join(islice(rows, _LINES)):
            file.write(lines)
