"""The table of a result as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenly.frames import Tabular

_WIDTH = 20


def row_lines(result: Tabular) -> list[str]:
    """One line per row of the result's table: the label, then the value."""
    return [f"  {label:<{_WIDTH}}{value}" for label, value in result._rows()]
