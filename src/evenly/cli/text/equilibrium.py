"""`evenly equilibrium` as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenly.cli.text.common import histogram, percent
from evenly.cli.text.rows import row_lines

if TYPE_CHECKING:
    from evenly.theory.equilibrium import Equilibrium


def equilibrium_text(found: Equilibrium) -> str:
    """Return the text that `evenly equilibrium` prints."""
    from evenly.theory.balance import optimal_thresholds

    best = " or ".join(map(str, optimal_thresholds(found.load)))
    low, above = math.floor(found.load), found.load - math.floor(found.load)
    shares = (
        f"{percent(1 - above)} of pools hold {low}, the others {low + 1}" if above else f"every pool holds {low}"
    )
    return "\n".join(
        [
            f"{found.name} at load {found.load:.12g}: {_verdict(found)}",
            "",
            *row_lines(found),
            "",
            *histogram(found.pools_with_exactly.tolist(), "pools"),
            "",
            f"The optimal threshold is {best}: {shares}.",
        ]
    )


def _verdict(found: Equilibrium) -> str:
    match found.kind:
        case "large":
            return f"too large; theta {found.theta:.6f}, the share of pools at the threshold"
        case "small":
            high = (found.threshold or 0) + 2
            return f"too small; theta {found.theta:.6f}, the share of pools with {high} or more tasks"
        case "balanced":
            return "optimal; the load is balanced"
        case _:
            return "where pools settle in the large-system limit"
