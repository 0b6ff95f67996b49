"""`evenly equilibrium` as text."""

from __future__ import annotations

import math
from typing import Any

from evenly.cli.text.common import histogram, percent
from evenly.plots.names import policy_name


def equilibrium_text(facts: dict[str, Any]) -> str:
    """What `evenly equilibrium` prints."""
    from evenly.theory.balance import optimal_thresholds

    load, threshold, kind, theta = (facts[key] for key in ("load", "threshold", "kind", "theta"))
    name = policy_name(facts["policy"], threshold=threshold, choices=facts["choices"])
    head = f"{name} at load {load:.12g}"
    more: list[str] = []
    match kind:
        case "large":
            head += f": too large; theta {theta:.6f}, the share of pools at the threshold"
            more = [f"  offered traffic     {facts['offered']:.6f} to pools below the threshold"]
        case "small":
            head += f": too small; theta {theta:.6f}, the share of pools with {threshold + 2} or more tasks"
            more = [f"  sent at random      {facts['birth_rate']:.6f} per pool, out of {load:.12g}"]
        case "balanced":
            head += ": optimal; the load is balanced"
        case _:
            head += ": where very many pools settle"
    best = " or ".join(map(str, optimal_thresholds(load)))
    low, above = math.floor(load), load - math.floor(load)
    shares = (
        f"{percent(1 - above)} of pools hold {low}, the others {low + 1}" if above else f"every pool holds {low}"
    )
    return "\n".join(
        [
            head,
            "",
            f"  tasks per pool      {facts['mean_tasks']:.6f}",
            *more,
            "",
            *histogram(facts["pools_with_exactly"], "pools"),
            "",
            f"Optimal is threshold {best}: {shares}.",
        ]
    )
