"""`evenly simulate` and `evenly compare` as text."""

from __future__ import annotations

import math
from itertools import chain
from typing import TYPE_CHECKING

from evenly.cli.text.common import WIDEST_TABLE, histogram
from evenly.frames import UNKNOWN
from evenly.sim import summary

if TYPE_CHECKING:
    from evenly.sim import Comparison, Result, Scenario


def simulation_text(result: Result) -> str:
    """Return the output of `evenly simulate`."""
    scenario = result.scenario
    runs = "one run" if result.replications == 1 else f"{result.replications:,} runs"
    rows = dict(summary.rows(result))
    if scenario.sized and scenario.steady:
        rows["utility per pool"] += f" (at most {_best_utility(scenario):.4f} in the long run)"
    lines = [
        f"{scenario.label}: {scenario.setting}",
        f"{runs} to time {scenario.horizon:g}, averages from {scenario.warmup:g} on{_intervals(result)}",
        *_measured(scenario),
        "",
        *(f"  {label:<20}{value}" for label, value in rows.items()),
        "",
        *histogram(result.pools_with_exactly.tolist(), "pools"),
    ]
    if scenario.warmup == 0:
        lines += ["", "The averages include the start; use --warmup T to leave out the time before T."]
    lines += ["", f"{result.events:,} events in {result.seconds:.2f} s"]
    return "\n".join(lines)


def _measured(scenario: Scenario) -> list[str]:
    """Return what the user's own numbers were before they were scaled to the mean task time and to the load."""
    found = []
    if (mean := scenario.service_law.own_mean) is not None:
        wanted = 1 / scenario.service_rate
        found.append(f"durations scaled from their own mean {mean:.6g} to the mean task time {wanted:.6g}")
    if (rate := scenario.arrival_process.own_rate) is not None:
        wanted = scenario.pools * scenario.load_at_start * scenario.service_rate
        found.append(
            f"arrivals scaled from their own rate {rate:.6g} to pools x load x service rate = {wanted:.6g}"
        )
    return found


def _best_utility(scenario: Scenario) -> float:
    """Return the utility per pool that no policy exceeds in the long run."""
    from evenly.theory import predict_best_utility

    best = predict_best_utility(sizes=scenario.classes, load=scenario.load_at_start, utility=scenario.measure)
    return best.bound


def print_comparison(comparison: Comparison) -> None:
    """Print the output of `evenly compare`: one row per policy."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    scenario = comparison[0].scenario
    cells = summary.comparison_cells(comparison)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in cells:
        table.add_column(heading, justify="left" if heading == "policy" else "right", no_wrap=True)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*row)
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDEST_TABLE)
    span = f"time {scenario.warmup:g} to {scenario.horizon:g}{_intervals(comparison[0])}"
    console.print(f"{scenario.setting}, {span}")
    for line in _measured(scenario):
        console.print(line)
    console.print(table)
    if scenario.sized:
        best = f", at most {_best_utility(scenario):.4f} in the long run" if scenario.steady else ""
        console.print(f"utility: {scenario.measure}, per pool{best}; max: tasks in the fullest pool;")
    else:
        console.print("max: tasks in the fullest pool; spread: standard deviation over pools;")
    if scenario.steady and not scenario.sized:
        ceiling = math.ceil(scenario.load_at_start)
        console.print(f"above {ceiling}: share of tasks in a pool with more than ceil(load) = {ceiling};")
    console.print("messages and resync: between pools and dispatcher, per task")
    if "kept" in cells:
        console.print("kept: share of the returning clients who got the pool that they had")
    if any(UNKNOWN in cell for cell in chain(*cells.values())):
        console.print(f"{UNKNOWN}: too few events to tell how accurate the average is")


def _intervals(result: Result) -> str:
    return ", ± for 95 % intervals" if result.half_widths() else ""
