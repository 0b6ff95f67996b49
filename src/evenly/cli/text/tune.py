"""Tuning as text that people read."""

from __future__ import annotations

from math import floor, isfinite
from typing import TYPE_CHECKING

import typer

from evenly.cli.text.common import WIDEST_TABLE, WORTH_A_LINE, percent

if TYPE_CHECKING:
    from rich.table import Table

    from evenly.advice.alpha import Advice
    from evenly.cli.commands.tune import Answer
    from evenly.theory.stability.predict import Stability
    from evenly.theory.tuning import Expectations

_LONG = 1000.0  # mean task times
_LEAST_SHOWN = 0.0005  # of an error with three places


def print_answer(answer: Answer) -> None:
    """What `evenly tune` prints."""
    if answer.advice is not None:
        _print_advice(answer.advice)
        return
    parts = [_rule_lines(answer)]
    if answer.expected is not None:
        parts.append(_expected_lines(answer.expected))
    if answer.stability is not None:
        parts.append(_stability_lines(answer.stability, answer.stable_pools))
    typer.echo("\n\n".join("\n".join(lines) for lines in parts if lines))


def _rule_lines(answer: Answer) -> list[str]:
    """The paper's rule for alpha."""
    load_max = answer.load_max
    if load_max is None:
        return []
    lines = [
        f"many pools, loads up to {load_max:g}",
        "",
        f"  alpha must be above {load_max:g}/{load_max + 1:g} = {answer.alpha_min:.6f}",
    ]
    if answer.suggested is not None:
        lines += [
            f"  take alpha          {answer.suggested}",
            "",
            "Then the threshold settles at an optimal value or one above it, whatever the load.",
            "With few pools it may never come to rest; --pools N measures what is best for N pools.",
        ]
    elif answer.stability is None:
        lines.append(f"  alpha {answer.alpha:<13} will do")
    return lines


def _expected_lines(expected: Expectations) -> list[str]:
    """Where the threshold settles, and when."""
    from evenly.theory.balance import optimal_thresholds

    load, alpha = expected.load, expected.alpha
    low, high = expected.settled_threshold
    settles = f"{low}" if low == high else f"{low} or {high}" if high == low + 1 else f"{low} to {high}"
    bound = f"{load:g}/{floor(load) + 1} = {load / (floor(load) + 1):.6f}"
    best = optimal_thresholds(load)
    if expected.optimal:
        verdict = f"yes: alpha is above {bound}"
    elif high in best:
        verdict = f"yes: alpha is not above {bound}, but at a load below 1 a threshold of 1 is as good as 0"
    else:
        verdict = f"not for sure: alpha is not above {bound}, and {' or '.join(map(str, best))} would be best"
    time = expected.settle_time_bound
    if time is not None:
        within = f"{time:.3f} mean task times, from {expected.initial_load:g} tasks per pool"
    else:
        reason = "the load is a whole number" if expected.whole_load else f"alpha is not above {bound}"
        within = f"no bound is known: {reason}"
    return [
        f"many pools, load {load:g}, alpha {alpha}",
        "",
        f"  threshold settles   at {settles}",
        f"  optimal             {verdict}",
        f"  settles within      {within}",
    ]


def _stability_lines(stability: Stability, stable_pools: int | None) -> list[str]:
    """How far a finite system is from that."""
    levels = [(level, share) for level, share in stability.threshold_share.items() if share >= WORTH_A_LINE]
    above, below = percent(stability.share_above), percent(stability.share_below)
    lines = [
        f"{stability.pools:,} pools, predicted",
        "",
        f"  threshold           {', '.join(f'{level}: {percent(share)}' for level, share in levels)}",
        f"  off the optimum     {percent(stability.share_off)} of the time ({above} above, {below} below)",
    ]
    if isfinite(stability.time_between_excursions):
        lines.append(
            f"  excursions          one in {stability.time_between_excursions:.3g} mean task times, "
            f"{stability.excursion_length:.3g} long"
        )
    lines.append(
        f"  changes             {stability.changes_rate:.3g} per mean task time, "
        f"at {stability.resync_per_task:.3g} resync messages per task"
    )
    lines += _steady_lines(stability, stable_pools)
    if not stability.reliable:
        lines += ["", *_rough_lines()]
    return lines


def _rough_lines() -> list[str]:
    from evenly.theory.stability.predict import ROUGH_PART, ROUGH_SHARE

    share, part = f"{100 * ROUGH_SHARE:g} %", f"{100 * ROUGH_PART:g} %"
    return [
        "Many pools lack several tasks when the threshold falls, which makes this prediction rough: shares may be",
        f"off by {share} of all time, small ones and rates by {part} of themselves.",
    ]


def _steady_lines(stability: Stability, stable_pools: int | None) -> list[str]:
    """How many pools it takes, or why none will do."""
    from evenly.theory.stability.predict import MOST_SEARCHED_LOAD, most_searched

    rests_at = stability.also_rests_at
    if rests_at is not None:
        lines = [f"  also rests at       {rests_at} with very many pools, so that no number of pools is steady"]
        if stability.time_between_excursions > _LONG:
            lines += [
                "",
                f"Once at {rests_at} it may stay for longer than any run: these shares are those of all time.",
            ]
        return lines
    if stable_pools is not None:
        return [f"  steady from         {stable_pools:,} pools on: off the optimum for at most 1 % of the time"]
    most = most_searched(stability.load)
    if most == 0:
        return [f"  steady              not sought at loads above {MOST_SEARCHED_LOAD}"]
    return [f"  steady              not found with up to {most:,} pools; more were not tried"]


def _print_advice(advice: Advice) -> None:
    """The recommendation, with a row a candidate."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDEST_TABLE)
    how = "solved exactly" if advice.method == "exact" else "simulated"
    stand_in = "" if advice.pools_measured == advice.pools else f" with {advice.pools_measured:,} pools instead"
    loads = ", ".join(f"{load:g}" for load in advice.loads)
    console.print(f"{advice.pools:,} pools, loads up to {advice.load_max:g}: {how} at loads {loads}{stand_in}\n")
    console.print(f"  take alpha          {advice.alpha}")
    console.print(f"  the paper's rule    {_rule_verdict(advice)}")
    console.print(_table(advice))
    console.print(
        "spread: standard deviation over pools, relative to join-the-shortest-queue, at the worst load;\n"
        "resync: messages per task after changes of the threshold; changes: per mean task time;\n"
        "optimal: share of time at an optimal threshold (means over the loads)"
    )


def _rule_verdict(advice: Advice) -> str:
    bound = f"alpha above {advice.load_max:g}/{advice.load_max + 1:g} = {advice.alpha_min:.6f}"
    if advice.chosen is None:
        return f"{bound}: met; so large a system was not measured, and {advice.pools_measured:,} pools are too few"
    if advice.paper_rule_met:
        return f"{bound}: met"
    if advice.paper_rule_possible:
        return f"{bound}: for many more pools; here it costs messages"
    return f"{bound}: out of reach with {advice.pools:,} pools"


def _table(advice: Advice) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("alpha", "spread", "resync", "changes", "optimal", ""):
        table.add_column(heading, justify="left" if heading in ("alpha", "") else "right", no_wrap=True)
    for candidate in advice.candidates:
        error = candidate.worst.error
        table.add_row(
            f"{candidate.alpha}",
            f"{candidate.relative_spread:.3f}" + (f" ± {error:.3f}" if error and error >= _LEAST_SHOWN else ""),
            f"{candidate.resync_per_task:.3f}",
            f"{candidate.changes_rate:.3g}",
            percent(candidate.share_optimal),
            "<- take this" if candidate.alpha == advice.alpha else "",
        )
    return table
