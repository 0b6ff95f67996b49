"""`evenly fluid` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenly.cli.text.common import histogram
from evenly.cli.text.rows import row_lines

if TYPE_CHECKING:
    from evenly.theory.fluid import FluidPath


def fluid_text(path: FluidPath) -> str:
    """Return the text that `evenly fluid` prints: the changes on the way and the state at the end."""
    from evenly.theory.balance import exactly

    return "\n".join(
        [
            path.title,
            f"at time {path.horizon:g}, with load {path.demand[-1]:.6g}",
            "",
            *row_lines(path),
            "",
            *histogram(exactly(path.occupancy[-1]).tolist(), "pools"),
        ]
    )
