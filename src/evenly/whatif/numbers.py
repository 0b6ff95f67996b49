"""Numbers in sentences."""

from __future__ import annotations

_LONG = 99999.5  # seconds; fractions of a second do not matter then


def seconds(time: float) -> str:
    """Return a time for readers: six digits, and no powers of ten for a long one."""
    return f"{time:,.0f}" if abs(time) >= _LONG else f"{time:,.6g}"


def counted(count: int, thing: str) -> str:
    """Return "1 server" or "1,200 servers"."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"
