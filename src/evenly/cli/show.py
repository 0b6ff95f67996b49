"""Results as text that people read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenly.sim import Result, Scenario
    from evenly.theory.exact import ExactLaw

_BAR = 40
_WIDEST_TABLE = 100
_WORTH_A_LINE = 0.0005


def policy_name(scenario: Scenario) -> str:
    """The policy with the parameters that make it."""
    match scenario.policy:
        case "threshold" if scenario.alpha is not None:
            return f"threshold, alpha {scenario.alpha}"
        case "threshold":
            return f"threshold {scenario.first_threshold}"
        case "jbt":
            return f"jbt {scenario.first_threshold}"
        case "power-of-d":
            return f"power-of-{scenario.sampled}"
        case name:
            return name


def setting(scenario: Scenario) -> str:
    """The system in a line."""
    if scenario.schedule is None:
        load = f"load {scenario.load_at_start:g}"
    else:
        load = f"load {','.join(map(str, scenario.phases))}"
    capacity = f", capacity {scenario.capacity}" if scenario.capacity is not None else ""
    return f"{scenario.pools:,} pools, {load}{capacity}"


def _plus_minus(value: float, half_width: float | None, digits: int = 3) -> str:
    error = "" if half_width is None else f" ± {half_width:.{digits}f}"
    return f"{value:.{digits}f}{error}"


def simulation_text(result: Result) -> str:
    """What `evenly simulate` prints."""
    means, ci, scenario = result.averages, result.ci95 or {}, result.scenario
    runs = "one run" if result.replications == 1 else f"{result.replications:,} runs"
    lines = [
        f"{policy_name(scenario)}: {setting(scenario)}",
        f"{runs} to time {scenario.horizon:g}, averages from {scenario.warmup:g} on{_intervals(result)}",
        "",
        f"  tasks per pool      {_plus_minus(means.mean_tasks, ci.get('mean_tasks'))}",
        f"  fullest pool        {_plus_minus(means.max_tasks, ci.get('max_tasks'))}",
        f"  spread over pools   {_plus_minus(means.spread, ci.get('spread'))}",
        f"  imbalance           {_plus_minus(means.imbalance, ci.get('imbalance'))}",
        f"  messages per task   {_plus_minus(means.messages_per_task, ci.get('messages_per_task'))}"
        + (f", and {means.resync_per_task:.3f} to resync" if result.window.resync else ""),
    ]
    if result.window.lost:
        lines.append(f"  tasks lost          {_percent(means.lost_share)}")
    lines += _threshold_lines(result)
    lines += ["", *_histogram(means.pools_with_exactly.tolist(), "pools")]
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
        f"{best[0]} for {_percent(best[1])} of the time, last change at {ending.since:.2f}"
    ]


def _percent(share: float) -> str:
    """A share in per cent, never rounded to 0 or 100 unless it is."""
    if 0 < share < 0.0001:
        return "< 0.01 %"
    if 0.9999 < share < 1:
        return "> 99.99 %"
    return f"{100 * share:.2f} %"


def _histogram(shares: Sequence[float], things: str) -> list[str]:
    """Rows of bars for the shares that can be seen."""
    shown = [level for level, share in enumerate(shares) if share >= _WORTH_A_LINE]
    if not shown:
        return []
    top = max(shares)
    return [
        f"  {level:>4} task{' ' if level == 1 else 's'} {_percent(shares[level]):>8} of {things} "
        f"{'█' * max(1, round(_BAR * shares[level] / top)) if shares[level] >= _WORTH_A_LINE else ''}"
        for level in range(shown[0], shown[-1] + 1)
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
            policy_name(result.scenario),
            _plus_minus(means.max_tasks, ci.get("max_tasks"), 2),
            _plus_minus(means.spread, ci.get("spread")),
            *([_percent(result.share_above(ceiling))] if steady else []),
            f"{means.messages_per_task:.3f}",
            f"{means.resync_per_task:.3f}",
            *([_percent(means.lost_share)] if lossy else []),
        )
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, _WIDEST_TABLE)
    console.print(f"{setting(scenario)}, time {scenario.warmup:g} to {scenario.horizon:g}{_intervals(results[0])}")
    console.print(table)
    above = f"above {ceiling}: share of tasks in a pool with more than ceil(load) = {ceiling};\n" if steady else ""
    console.print(
        f"max: tasks in the fullest pool; spread: standard deviation over pools;\n{above}"
        "messages and resync: between pools and dispatcher, per task"
    )


def _intervals(result: Result) -> str:
    return ", ± for 95 % intervals" if result.ci95 else ""


def law_name(law: ExactLaw) -> str:
    """The policy of an exact law with the parameters that make it."""
    if law.policy == "threshold":
        return f"threshold, alpha {law.alpha}" if law.alpha is not None else f"threshold {law.threshold_start}"
    return f"power-of-{law.choices}" if law.policy == "power-of-d" else law.policy


def exact_text(law: ExactLaw) -> str:
    """What `evenly exact` prints."""
    facts = law.to_dict()
    lines = [
        f"{law_name(law)}: {law.pools:,} pools, load {law.load:g}, exact from {law.states:,} states",
        "",
        f"  tasks per pool      {law.mean_tasks:.6f}",
        f"  fullest pool        {law.max_tasks_mean:.6f}",
        f"  imbalance           {law.imbalance_mean:.6f}",
    ]
    if facts["messages"]:
        lines.append(
            f"  messages per task   {facts['messages']['per_task']:.6f}, "
            f"and {facts['messages']['resync_per_task']:.6f} to resync"
        )
    if facts["threshold"]:
        shares = ", ".join(f"{level}: {_percent(share)}" for level, share in facts["threshold"]["time_at"].items())
        lines.append(f"  threshold           {facts['threshold']['mean']:.6f} on average ({shares})")
    if law.capacity is not None:
        lines.append(f"  tasks lost          {_percent(facts['lost'])}")
    return "\n".join([*lines, "", *_histogram(facts["pools_with_exactly"], "pools")])
