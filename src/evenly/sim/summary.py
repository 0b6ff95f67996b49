"""What a result shows of itself, in a line and as a table; the command line prints the same words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenly.frames import percent, plus_minus

if TYPE_CHECKING:
    from evenly.sim.result import Result


def headline(result: Result) -> str:
    """The scenario, the fullest pool and the spread in one line."""
    fullest = plus_minus(result.max_tasks, result.half_widths().get("max_tasks"), 2)
    return f"{result.scenario.summary}: max {fullest}, spread {result.spread:.2f}"


def rows(result: Result) -> list[tuple[str, str]]:
    """The means with their intervals, as `evenly simulate` prints them."""
    widths = result.half_widths()
    resync = f", and {result.resync_per_task:.3f} to resync" if result.window.resync else ""
    found = [
        ("tasks per pool", plus_minus(result.mean_tasks, widths.get("mean_tasks"))),
        ("fullest pool", plus_minus(result.max_tasks, widths.get("max_tasks"))),
        ("spread over pools", plus_minus(result.spread, widths.get("spread"))),
        ("imbalance", plus_minus(result.imbalance, widths.get("imbalance"))),
        ("messages per task", plus_minus(result.messages_per_task, widths.get("messages_per_task")) + resync),
    ]
    if result.lost_tasks:
        found.append(("tasks lost", percent(result.lost_share)))
    return found + _threshold_row(result)


def _threshold_row(result: Result) -> list[tuple[str, str]]:
    if result.scenario.alpha is None or not result.endings:
        return []
    ending = result.endings[0]
    level, share = max(result.threshold_share.items(), key=lambda item: item[1])
    optimum = math.floor(result.scenario.demand(result.scenario.horizon))
    text = (
        f"{ending.threshold} at the end (optimum {optimum}), "
        f"{level} for {percent(share)} of the time, last change at {ending.since:.2f}"
    )
    return [("threshold", text)]


def comparison_cells(results: Sequence[Result]) -> dict[str, list[str]]:
    """The columns of `evenly compare`, one row per result."""
    scenario = results[0].scenario
    pairs = [(result, result.half_widths()) for result in results]
    cells = {
        "policy": [result.scenario.label for result in results],
        "max": [plus_minus(result.max_tasks, width.get("max_tasks"), 2) for result, width in pairs],
        "spread": [plus_minus(result.spread, width.get("spread")) for result, width in pairs],
    }
    if scenario.steady:  # else there is no one ceiling of the load
        ceiling = math.ceil(scenario.load_at_start)
        cells[f"above {ceiling}"] = [percent(result.share_above(ceiling)) for result in results]
    cells |= {
        "messages": [f"{result.messages_per_task:.3f}" for result in results],
        "resync": [f"{result.resync_per_task:.3f}" for result in results],
    }
    if any(result.lost_tasks for result in results):
        cells["lost"] = [percent(result.lost_share) for result in results]
    return cells


def share_label(result: Result) -> str:
    """A policy's entry in the legend of the resource shares."""
    scenario = result.scenario
    if not scenario.steady:  # there is no one ceiling of the load
        return f"{scenario.label}: spread {result.spread:.2f}"
    ceiling = math.ceil(scenario.load_at_start)
    above = 100 * result.share_above(ceiling)
    return f"{scenario.label}: spread {result.spread:.2f}, {above:.2g} % above {ceiling}"
