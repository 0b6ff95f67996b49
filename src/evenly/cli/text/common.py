"""Text that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenly.frames import percent, plus_minus

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["WIDEST_TABLE", "WORTH_A_LINE", "histogram", "percent", "plus_minus"]

_BAR = 40
WIDEST_TABLE = 100
WORTH_A_LINE = 0.0005
_MAX_ROWS = 40


def histogram(shares: Sequence[float], things: str) -> list[str]:
    """Return rows of bars for the visible shares, or for the largest of them if there are many."""
    seen = [level for level, share in enumerate(shares) if share >= WORTH_A_LINE]
    if not seen:
        return []
    shown = list(range(seen[0], seen[-1] + 1))
    if len(shown) > _MAX_ROWS:
        shown = sorted(sorted(seen, key=lambda level: -shares[level])[:_MAX_ROWS])
    top, width = max(shares), max(4, len(str(shown[-1])))
    rows = [
        f"  {level:>{width}} task{' ' if level == 1 else 's'} {percent(shares[level]):>8} of {things} "
        f"{'█' * max(1, round(_BAR * shares[level] / top)) if shares[level] >= WORTH_A_LINE else ''}"
        for level in shown
    ]
    if len(shown) < len(seen):
        left = percent(1 - sum(shares[level] for level in shown))
        rows.append(f"  other numbers of tasks, each rarer: {left} of {things}")
    return rows
