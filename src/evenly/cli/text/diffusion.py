"""`evenly diffusion` as text."""

from __future__ import annotations

import math
from typing import Any

from evenly.cli.text.common import percent


def diffusion_text(facts: dict[str, Any]) -> str:
    """What `evenly diffusion` prints."""
    load, pools, low = facts["load"], facts["pools"], facts["threshold"]
    whole = facts["limit"] == "reflected"
    kind = "a whole number: reflected limit" if whole else "not a whole number: Ornstein-Uhlenbeck limit"
    if whole:
        meanings = {"below": f"tasks missing below {low}", "above": f"pools with more than {low}"}
        rows = {meaning: facts["stationary"][key] for key, meaning in meanings.items()}
        unit = f"in units of sqrt(pools); their correlation is {facts['stationary']['correlation']:.3f}"
    else:
        rows = {f"pools with {low + 1} or more": facts["stationary"]}
        unit = f"less {load - low:.6g} of the pools, in units of sqrt(pools)"
    width = 2 + max(22, *map(len, rows))
    lines = [
        f"load {load:.12g} is {kind}",
        f"under threshold {low}, and under join-the-shortest-queue, in the long run:",
        "",
        f"  {'':<{width}}{'mean':>9}{'deviation':>11}{'5 %':>9}{'50 %':>9}{'95 %':>9}",
    ]
    for meaning, law in rows.items():
        marks = "".join(f"{law['quantiles'][share]:>9.3f}" for share in ("0.05", "0.5", "0.95"))
        lines.append(f"  {meaning:<{width}}{law['mean']:>9.3f}{math.sqrt(law['variance']):>11.3f}{marks}")
    lines += ["", f"  {unit}"]
    if pools is None:
        return "\n".join(lines)
    lines += ["", f"Of {pools:,} pools, mean and standard deviation:", ""]
    for level, mean in facts["occupancy_mean"].items():
        deviation = facts["occupancy_deviation"][level]
        lines.append(f"  {percent(mean)} ± {percent(deviation)} have {level} or more tasks")
    if whole:
        lines.append(f"  {percent(facts['saturated_share'])} of arrivals find no pool with fewer than {low} tasks")
    if _few_pools(facts):
        lines += ["", "Two deviations lead past none or all of the pools: so few are far from the limit."]
    return "\n".join(lines)


def _few_pools(facts: dict[str, Any]) -> bool:
    """Whether the limit puts much weight where no fraction of pools can be; near its boundary it never does."""
    means, deviations = facts["occupancy_mean"], facts["occupancy_deviation"]
    first, last = next(iter(means)), next(reversed(means))
    return bool(means[first] < 2 * deviations[first] or means[last] + 2 * deviations[last] > 1)
