"""Results as text that people read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from evenly.plots.names import policy_name, scenario_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenly.sim import Result, Scenario
    from evenly.theory.exact import ExactLaw
    from evenly.theory.fluid import FluidPath

_BAR = 40
WIDEST_TABLE = 100
WORTH_A_LINE = 0.0005
_MOST_MOVES = 12
_MOST_ROWS = 40


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
        f"{scenario_name(scenario)}: {setting(scenario)}",
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
        lines.append(f"  tasks lost          {percent(means.lost_share)}")
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
        f"{best[0]} for {percent(best[1])} of the time, last change at {ending.since:.2f}"
    ]


def percent(share: float) -> str:
    """A share in per cent, never rounded to 0 or 100 unless it is."""
    if 0 < share < 0.0001:
        return "< 0.01 %"
    if 0.9999 < share < 1:
        return "> 99.99 %"
    return f"{100 * share:.2f} %"


def _histogram(shares: Sequence[float], things: str) -> list[str]:
    """Rows of bars for the shares that can be seen, or for the largest of them if there are many."""
    seen = [level for level, share in enumerate(shares) if share >= WORTH_A_LINE]
    if not seen:
        return []
    shown = list(range(seen[0], seen[-1] + 1))
    if len(shown) > _MOST_ROWS:
        shown = sorted(sorted(seen, key=lambda level: -shares[level])[:_MOST_ROWS])
    top, width = max(shares), max(4, len(str(shown[-1])))
    rows = [
        f"  {level:>{width}} task{' ' if level == 1 else 's'} {percent(shares[level]):>8} of {things} "
        f"{'█' * max(1, round(_BAR * shares[level] / top)) if shares[level] >= WORTH_A_LINE else ''}"
        for level in shown
    ]
    if len(shown) < len(seen):
        left = percent(1 - sum(shares[level] for level in shown))
        rows.append(f"  and {left} of {things} with other numbers of tasks, each of them rarer")
    return rows


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
            _plus_minus(means.max_tasks, ci.get("max_tasks"), 2),
            _plus_minus(means.spread, ci.get("spread")),
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


def exact_text(law: ExactLaw) -> str:
    """What `evenly exact` prints."""
    facts = law.to_dict()
    name = policy_name(law.policy, threshold=law.threshold_start, alpha=law.alpha, choices=law.choices)
    lines = [
        f"{name}: {law.pools:,} pools, load {law.load:g}, exact from {law.states:,} states",
        "",
        f"  tasks per pool      {law.mean_tasks:.6f}",
        f"  fullest pool        {law.max_tasks_mean:.6f}",
        f"  spread over pools   {law.spread_mean:.6f}",
        f"  imbalance           {law.imbalance_mean:.6f}",
    ]
    if facts["messages"]:
        lines.append(
            f"  messages per task   {facts['messages']['per_task']:.6f}, "
            f"and {facts['messages']['resync_per_task']:.6f} to resync"
        )
    if facts["threshold"]:
        shares = ", ".join(f"{level}: {percent(share)}" for level, share in facts["threshold"]["time_at"].items())
        lines.append(f"  threshold           {facts['threshold']['mean']:.6f} on average ({shares})")
    if law.capacity is not None:
        lines.append(f"  tasks lost          {percent(facts['lost'])}")
    return "\n".join([*lines, "", *_histogram(facts["pools_with_exactly"], "pools")])


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
            *_histogram(facts["pools_with_exactly"], "pools"),
            "",
            f"Optimal is threshold {best}: {shares}.",
        ]
    )


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
            *_histogram(shares, "pools"),
        ]
    )
