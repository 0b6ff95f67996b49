"""`evenly simulate` and `evenly compare` as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evenly.cli.text.common import WIDEST_TABLE, histogram, percent, plus_minus
from evenly.plots.names import scenario_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenly.sim import Result, Scenario


def setting(scenario: Scenario) -> str:
    """The system in a line."""
    if scenario.schedule is None:
        load = f"load {scenario.load_at_start:g}"
    else:
        load = f"load {','.join(map(str, scenario.phases))}"
    capacity = f", capacity {scenario.capacity}" if scenario.capacity is not None else ""
    return f"{scenario.pools:,} pools, {load}{capacity}"


def simulation_text(result: Result) -> str:
    """What `evenly simulate` prints."""
    means, ci, scenario = result.averages, result.ci95 or {}, result.scenario
    runs = "one run" if result.replications == 1 else f"{result.replications:,} runs"
    lines = [
        f"{scenario_name(scenario)}: {setting(scenario)}",
        f"{runs} to time {scenario.horizon:g}, averages from {scenario.warmup:g} on{_intervals(result)}",
        "",
        f"  tasks per pool      {plus_minus(means.mean_tasks, ci.get('mean_tasks'))}",
        f"  fullest pool        {plus_minus(means.max_tasks, ci.get('max_tasks'))}",
        f"  spread over pools   {plus_minus(means.spread, ci.get('spread'))}",
        f"  imbalance           {plus_minus(means.imbalance, ci.get('imbalance'))}",
        f"  messages per task   {plus_minus(means.messages_per_task, ci.get('messages_per_task'))}"
        + (f", and {means.resync_per_task:.3f} to resync" if result.window.resync else ""),
    ]
    if result.window.lost:
        lines.append(f"  tasks lost          {percent(means.lost_share)}")
    lines += _threshold_lines(result)
    lines += ["", *histogram(means.pools_with_exactly.tolist(), "pools")]
    if scenario.warmup == 0:
        lines += ["", "The start is part of the averages; --warmup T leaves out what comes before T."]
    lines += ["", f"{result.events:,} events in {result.seconds:.2f} s"]
    return "\n".join(lines)


def _threshold_lines(result: Result) -> list[str]:
    if result.scenario.alpha is None or not result.endings:
        return []
    ending = result.endings[0]
    best = max(result.averages.threshold_time_at.items(), key=lambda item: item[1])
    optimum = math.floor(result.scenario.demand(result.scenario.horizon))
    return [
        f"  threshold           {ending.threshold} at the end (optimum {optimum}), "
        f"{best[0]} for {percent(best[1])} of the time, last change at {ending.since:.2f}"
    ]


def print_comparison(results: Sequence[Result]) -> None:
    """What `evenly compare` prints: a row a policy."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    scenario = results[0].scenario
    lossy = any(result.window.lost for result in results)
    steady = scenario.steady  # else there is no one ceiling of the load
    ceiling = math.ceil(scenario.load_at_start)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    headings = ["max", "spread", *([f"above {ceiling}"] if steady else []), "messages", "resync"]
    for heading in headings + (["lost"] if lossy else []):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        means, ci = result.averages, result.ci95 or {}
        table.add_row(
            scenario_name(result.scenario),
            plus_minus(means.max_tasks, ci.get("max_tasks"), 2),
            plus_minus(means.spread, ci.get("spread")),
            *([percent(result.share_above(ceiling))] if steady else []),
            f"{means.messages_per_task:.3f}",
            f"{means.resync_per_task:.3f}",
            *([percent(means.lost_share)] if lossy else []),
        )
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDEST_TABLE)
    console.print(f"{setting(scenario)}, time {scenario.warmup:g} to {scenario.horizon:g}{_intervals(results[0])}")
    console.print(table)
    above = f"above {ceiling}: share of tasks in a pool with more than ceil(load) = {ceiling};\n" if steady else ""
    console.print(
        f"max: tasks in the fullest pool; spread: standard deviation over pools;\n{above}"
        "messages and resync: between pools and dispatcher, per task"
    )


def _intervals(result: Result) -> str:
    return ", ± for 95 % intervals" if result.ci95 else ""
