"""Tuning as text that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from evenly.cli.text.common import WIDEST_TABLE, percent
from evenly.cli.text.rows import row_lines

if TYPE_CHECKING:
    from rich.table import Table

    from evenly.advice.recommendation import Advice
    from evenly.advice.tune_report import TuneReport
    from evenly.theory.settling import Settling
    from evenly.theory.stability.result import Stability

_LONG = 1000.0  # mean task times
_LEAST_SHOWN = 0.0005  # of an error with three places


def print_report(report: TuneReport) -> None:
    """Print a report the way `evenly tune` does."""
    if report.advice is not None:
        _print_advice(report.advice)
        return
    parts = [_rule_lines(report)]
    if report.settling is not None:
        parts.append(_settling_lines(report.settling))
    if report.stability is not None:
        parts.append(_stability_lines(report.stability, report.stable_pools))
    typer.echo("\n\n".join("\n".join(lines) for lines in parts if lines))


def _rule_lines(report: TuneReport) -> list[str]:
    """Return the paper's rule for alpha."""
    load_max = report.load_max
    if load_max is None:
        return []
    lines = [
        f"large-system limit, loads up to {load_max:g}",
        "",
        f"  alpha must be above {load_max:g}/{load_max + 1:g} = {report.alpha_min:.6f}",
    ]
    if report.suggested_alpha is not None:
        lines += [
            f"  recommended alpha   {report.suggested_alpha}",
            "",
            "With it, the threshold settles at an optimal value or one above it, at any load.",
            "With few pools it may keep moving; --pools N finds the best alpha for N pools.",
        ]
    elif report.stability is None:
        lines.append(f"  alpha {report.alpha:<13} is high enough")
    return lines


def _settling_lines(settling: Settling) -> list[str]:
    """Return lines on where the threshold settles, and when."""
    return [
        f"large-system limit, load {settling.load:g}, alpha {settling.alpha}",
        "",
        *row_lines(settling),
    ]


def _stability_lines(stability: Stability, stable_pools: int | None) -> list[str]:
    """Return lines on how steady the threshold of a finite system is."""
    lines = [
        f"{stability.pools:,} pools, predicted",
        "",
        *row_lines(stability),
        *_steady_lines(stability, stable_pools),
    ]
    if not stability.reliable:
        lines += ["", *_rough_lines()]
    return lines


def _rough_lines() -> list[str]:
    from evenly.theory.stability.result import ROUGH_PART, ROUGH_SHARE

    share, part = f"{100 * ROUGH_SHARE:g} %", f"{100 * ROUGH_PART:g} %"
    return [
        "Many pools lack several tasks when the threshold falls, which makes this prediction rough: shares may be",
        f"off by {share} of the time, and small shares and rates by {part} of their value.",
    ]


def _steady_lines(stability: Stability, stable_pools: int | None) -> list[str]:
    """Return lines on how many pools keep the threshold steady, or on why no number does."""
    from evenly.theory.stability.predict import MAX_SEARCHED_LOAD, most_searched

    rests_at = stability.also_rests_at
    if rests_at is not None:
        lines = [
            f"  also rests at       {rests_at} in the large-system limit, so no number of pools makes it steady"
        ]
        if stability.time_between_excursions > _LONG:
            lines += [
                "",
                f"Once at {rests_at}, it may stay there longer than any run; these shares are long-run averages.",
            ]
        return lines
    if stable_pools is not None:
        return [f"  steady from         {stable_pools:,} pools on: off the optimum for at most 1 % of the time"]
    most = most_searched(stability.load)
    if most == 0:
        return [f"  steady              not searched at loads above {MAX_SEARCHED_LOAD}"]
    return [f"  steady              not found up to {most:,} pools, where the search ends"]


def _print_advice(advice: Advice) -> None:
    """Print the recommendation, one row per candidate."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDEST_TABLE)
    how = "solved exactly" if advice.method == "exact" else "simulated"
    stand_in = "" if advice.pools_measured == advice.pools else f" with {advice.pools_measured:,} pools instead"
    loads = ", ".join(f"{load:g}" for load in advice.loads)
    late = advice.delay.mean > 0
    delay = f", delay {advice.delay}" if late else ""
    console.print(
        f"{advice.pools:,} pools, loads up to {advice.load_max:g}{delay}: {how} at loads {loads}{stand_in}\n"
    )
    console.print(f"  recommended alpha   {advice.alpha}")
    console.print(f"  the paper's rule    {advice.rule_verdict}")
    console.print(_table(advice))
    console.print(
        "spread: standard deviation over pools, relative to join-the-shortest-queue, at the worst load;\n"
        "resync: messages per task after threshold changes; changes: per mean task time"
        + ("" if late else ";\noptimal: share of time at an optimal threshold")
        + " (means over the loads)"
    )


def _table(advice: Advice) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    optimal = [] if advice.delay.mean > 0 else ["optimal"]
    for heading in ("alpha", "spread", "resync", "changes", *optimal, ""):
        table.add_column(heading, justify="left" if heading in ("alpha", "") else "right", no_wrap=True)
    for candidate in advice.candidates:
        error = candidate.worst.error
        table.add_row(
            f"{candidate.alpha}",
            f"{candidate.relative_spread:.3f}" + (f" ± {error:.3f}" if error and error >= _LEAST_SHOWN else ""),
            f"{candidate.resync_per_task:.3f}",
            f"{candidate.change_rate:.3g}",
            *([] if candidate.share_optimal is None else [percent(candidate.share_optimal)]),
            "<- recommended" if candidate.alpha == advice.alpha else "",
        )
    return table
