"""`evenly diffusion` as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenly.cli.text.common import percent

if TYPE_CHECKING:
    from evenly.theory.diffusion import DiffusionLimit


def diffusion_text(found: DiffusionLimit) -> str:
    """Return the text that `evenly diffusion` prints."""
    load, low = found.load, found.threshold
    facts = found.to_dict()
    whole = found.limit == "reflected"
    kind = "a whole number: reflected limit" if whole else "not a whole number: Ornstein-Uhlenbeck limit"
    if whole:
        rows = {meaning: facts["stationary"][key] for key, meaning in found.quantities.items()}
        unit = f"in units of sqrt(pools); their correlation is {facts['stationary']['correlation']:.3f}"
    else:
        rows = dict.fromkeys(found.quantities.values(), facts["stationary"])
        unit = f"minus {load - low:.6g} of the pools, in units of sqrt(pools)"
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
    return "\n".join([*lines, "", f"  {unit}", *_pool_lines(found)])


def _pool_lines(found: DiffusionLimit) -> list[str]:
    """Return what the limit predicts for a number of pools."""
    means, deviations = found.occupancy_mean, found.occupancy_deviation
    if means is None or deviations is None:
        return []
    lines = ["", f"For {found.pools:,} pools, mean and standard deviation:", ""]
    lines += [
        f"  {percent(mean)} ± {percent(deviations[level])} have {level} or more tasks"
        for level, mean in means.items()
    ]
    if found.saturated_share is not None:
        share = percent(found.saturated_share)
        lines.append(f"  {share} of arrivals find no pool with fewer than {found.threshold} tasks")
    if _few_pools(means, deviations):
        lines += [
            "",
            "Two standard deviations reach past 0 % or 100 % of pools: a system this small is far from its limit.",
        ]
    return lines


def _few_pools(means: dict[int, float], deviations: dict[int, float]) -> bool:
    """Return True if the limit puts much weight where no fraction of pools can be.

    Near its boundary, the reflected limit never does.
    """
    first, last = next(iter(means)), next(reversed(means))
    return bool(means[first] < 2 * deviations[first] or means[last] + 2 * deviations[last] > 1)
