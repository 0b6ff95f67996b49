"""`evenly fluid` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenly.cli.text.common import histogram
from evenly.plots.names import policy_name

if TYPE_CHECKING:
    from evenly.theory.fluid import FluidPath


_MOST_MOVES = 12


def fluid_title(facts: dict[str, Any]) -> str:
    """What a fluid solution is one of."""
    name = policy_name("threshold", threshold=facts["first_threshold"], alpha=facts["alpha"])
    load = f"{facts['load']:.12g}" if facts["schedule"] is None else facts["schedule"]
    initial = facts["initial"]
    if isinstance(initial, list):
        start = f"pools with {min(initial)} to {max(initial)} tasks"
    else:
        start = f"{initial:.12g} task{'' if initial == 1 else 's'} per pool" if initial else "empty pools"
    return f"fluid limit: {name}, load {load}, from {start}"


def fluid_text(path: FluidPath, facts: dict[str, Any]) -> str:
    """What `evenly fluid` prints: the changes on the way and the state at the end."""
    from evenly.theory.balance import exactly, optimal_thresholds

    learns = path.update_times.size > 0
    last = dict(zip(path.update_times.tolist(), path.update_thresholds.tolist(), strict=True))  # at each time
    moves = [f"{value} at {time:.4f}" for time, value in last.items()]
    shown = moves if len(moves) <= _MOST_MOVES else [*moves[: _MOST_MOVES - 1], "...", moves[-1]]
    best = " or ".join(map(str, optimal_thresholds(path.demand[-1])))
    shares = exactly(path.occupancy[-1]).tolist()
    return "\n".join(
        [
            fluid_title(facts),
            f"at time {path.times[-1]:g}, when the load is {path.demand[-1]:.6g}",
            "",
            f"  tasks per pool      {path.total_mass[-1]:.6f}",
            f"  threshold           {path.threshold[-1]} at the end (optimum {best})",
            *([f"  changes             {', '.join(shown)}"] if learns else []),
            f"  imbalance           {path.imbalance[-1]:.6f}",
            f"  error of the mass   {path.mass_error:.1e}",
            "",
            *histogram(shares, "pools"),
        ]
    )
