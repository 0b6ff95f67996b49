"""The one-line summary and the table of a result; the command line prints the same text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evenly.frames import UNKNOWN, percent, plus_minus

if TYPE_CHECKING:
    from evenly.sim.result import Result
    from evenly.sim.scenario import Scenario

_UNKNOWN = "-"


def headline(result: Result) -> str:
    """Return the scenario, the fullest pool and the spread in one line."""
    fullest = plus_minus(result.max_tasks, result.half_widths().get("max_tasks"), 2)
    return f"{result.scenario.summary}: max {fullest}, spread {result.spread:.2f}"


def rows(result: Result) -> list[tuple[str, str]]:
    """Return the means with their intervals, as `evenly simulate` prints them."""
    widths = result.half_widths()
    resync = f", and {result.resync_per_task:.3f} to resync" if result.window.resync else ""
    found = [
        ("tasks per pool", _explained(result.mean_tasks, widths.get("mean_tasks"))),
        ("fullest pool", _explained(result.max_tasks, widths.get("max_tasks"))),
        *(_rows_of_sizes(result, widths) if result.scenario.sized else _rows_of_balance(result, widths)),
    ]
    if _counts_messages(result):
        sent = _explained(result.messages_per_task, widths.get("messages_per_task"))
        found.append(("messages per task", sent + resync))
    if result.lost_tasks:
        found.append(("tasks lost", percent(result.lost_share)))
    if result.window.returned:
        found.append(("clients kept", f"{percent(result.kept_share)} of those who returned"))
    return found + _threshold_row(result)


def _explained(value: float, half_width: float | None, digits: int = 3) -> str:
    text = plus_minus(value, half_width, digits)
    return f"{text} (too few events to tell)" if UNKNOWN in text else text


def _counts_messages(result: Result) -> bool:
    """Return False for a policy of the user's own that counts no messages: there may be some all the same."""
    window = result.window
    sent = window.green + window.yellow + window.other + window.resync
    return sent > 0 or not result.scenario.info.own


def _rows_of_balance(result: Result, widths: Mapping[str, float]) -> list[tuple[str, str]]:
    return [
        ("spread over pools", _explained(result.spread, widths.get("spread"))),
        ("imbalance", _explained(result.imbalance, widths.get("imbalance"))),
    ]


def _rows_of_sizes(result: Result, widths: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the utility and the tasks of each class, instead of the distances from equal numbers."""
    classes = zip(result.scenario.classes, result.class_tasks.tolist(), strict=True)
    return [
        ("utility per pool", _explained(result.mean_utility, widths.get("mean_utility"), 4)),
        *((f"tasks at size {each.size:g}", f"{tasks:.3f}") for each, tasks in classes),
    ]


def _threshold_row(result: Result) -> list[tuple[str, str]]:
    if result.scenario.alpha is None or not result.endings:
        return []
    ending = result.endings[0]
    level, share = max(result.threshold_share.items(), key=lambda item: item[1])
    optimum = f" (optimum {result.scenario.best_threshold(result.scenario.horizon)})"
    if result.scenario.message_delay.mean > 0 or result.scenario.sticky:
        optimum = ""  # not known
    text = (
        f"{ending.threshold} at the end{optimum}, "
        f"{level} for {percent(share)} of the time, last change at {ending.since:.2f}"
    )
    return [("threshold", text)]


def shared_setting(results: Sequence[Result]) -> str:
    """Return what all results have in common, in one line: pools, load and capacity, or their ranges."""
    scenarios = [result.scenario for result in results]
    fewest, most = min(each.pools for each in scenarios), max(each.pools for each in scenarios)
    pools = f"{most:,} pools" if fewest == most else f"{fewest:,} to {most:,} pools"
    loads = list(dict.fromkeys(_load_words(each) for each in scenarios))
    capacities = {each.capacity for each in scenarios}
    limit = capacities.pop() if len(capacities) == 1 else None
    delays = {str(each.delay) for each in scenarios if each.message_delay.mean > 0}
    returns = {each.stickiness for each in scenarios if each.sticky}
    return ", ".join(
        [pools, _loads_words(loads, scenarios)]
        + ([] if limit is None else [f"capacity {limit}"])
        + ([f"delay {delays.pop()}"] if len(delays) == 1 else [])
        + ([returns.pop()] if len(returns) == 1 else [])
        + list(scenarios[0].laws if len({each.laws for each in scenarios}) == 1 else ())
    )


def _loads_words(words: Sequence[str], scenarios: Sequence[Scenario]) -> str:
    if len(words) == 1:
        return words[0]
    if not all(each.steady for each in scenarios):
        return f"{len(words)} kinds of demand"
    loads = [each.load_at_start for each in scenarios]
    return f"load {min(loads):g} to {max(loads):g}"


def _load_words(scenario: Scenario) -> str:
    return f"load {scenario.load_at_start:g}" if scenario.steady else f"load {scenario.schedule_text}"


def shared_span(results: Sequence[Result]) -> str | None:
    """Return the time span of the averages, or None if it differs."""
    spans = {f"time {each.scenario.warmup:g} to {each.scenario.horizon:g}" for each in results}
    return spans.pop() if len(spans) == 1 else None


def labels(results: Sequence[Result]) -> list[str]:
    """Return one label per result: its policy and, if policies repeat, the inputs that differ."""
    names = [result.scenario.label for result in results]
    if len(set(names)) < len(names):  # classes of several modules may have one name
        names = [
            result.scenario.info.name if result.scenario.info.own else name
            for result, name in zip(results, names, strict=True)
        ]
    for words in zip(*(_distinctions(result) for result in results), strict=True):
        if len(set(names)) == len(names):
            return names
        if len(set(words)) > 1:
            names = [f"{name}, {word}" for name, word in zip(names, words, strict=True)]
    seen: Counter[str] = Counter()
    for place, name in enumerate(names):
        seen[name] += 1
        names[place] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return names


def _distinctions(result: Result) -> list[str]:
    """Return the inputs that can tell results of one policy apart, in the order in which they are tried."""
    scenario = result.scenario
    start = scenario.initial_tasks
    tasks = f"{sum(start) / len(start):g}" if isinstance(start, Sequence) else f"{start:g}"
    return [
        f"{scenario.pools:,} pools",
        _load_words(scenario),
        "no capacity" if scenario.capacity is None else f"capacity {scenario.capacity}",
        f"initial threshold {scenario.initial_threshold}",
        f"initial tasks {tasks}",
        f"service rate {scenario.service_rate:g}",
        f"{scenario.service_law} service",
        f"{scenario.arrival_process} arrivals",
        f"delay {scenario.delay}",
        f"report interval {scenario.interval:g}",
        scenario.stickiness if scenario.sticky else "none return",
        f"horizon {scenario.horizon:g}",
        f"warm-up {scenario.warmup:g}",
        f"seed {result.seed}",
        f"{result.replications} replications",
    ]


def shortened(text: str, most: int) -> str:
    """Return the text, cut to `most` characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def comparison_cells(results: Sequence[Result]) -> dict[str, list[str]]:
    """Return the columns of `evenly compare`, one row per result."""
    pairs = [(result, result.half_widths()) for result in results]
    cells = {
        "policy": labels(results),
        "max": [plus_minus(result.max_tasks, width.get("max_tasks"), 2) for result, width in pairs],
        "spread": [plus_minus(result.spread, width.get("spread")) for result, width in pairs],
    }
    sized = all(result.scenario.sized for result in results)
    if sized:
        utilities = [plus_minus(result.mean_utility, width.get("mean_utility"), 4) for result, width in pairs]
        cells = {"policy": cells["policy"], "utility": utilities, "max": cells["max"]}
    loads = {result.scenario.load_at_start for result in results}
    if (
        not sized and len(loads) == 1 and all(result.scenario.steady for result in results)
    ):  # else there is no single ceiling
        ceiling = math.ceil(loads.pop())
        cells[f"above {ceiling}"] = [percent(result.share_above(ceiling)) for result in results]
    cells |= {
        "messages": [
            f"{result.messages_per_task:.3f}" if _counts_messages(result) else _UNKNOWN for result in results
        ],
        "resync": [
            f"{result.resync_per_task:.3f}" if _counts_messages(result) else _UNKNOWN for result in results
        ],
    }
    if any(result.window.returned for result in results):
        cells["kept"] = [percent(result.kept_share) if result.window.returned else _UNKNOWN for result in results]
    if any(result.lost_tasks for result in results):
        cells["lost"] = [percent(result.lost_share) for result in results]
    return cells


def share_label(result: Result, label: str) -> str:
    """Return a result's entry in the legend of the resource shares."""
    scenario = result.scenario
    if not scenario.steady:  # there is no single ceiling of the load
        return f"{label}: spread {result.spread:.2f}"
    ceiling = math.ceil(scenario.load_at_start)
    above = 100 * result.share_above(ceiling)
    return f"{label}: spread {result.spread:.2f}, {above:.2g} % above {ceiling}"
