"""The output of the demo of a fleet: a screen in a terminal, lines elsewhere, and the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from evenly.cli.text.demo import (
    AXIS,
    BORDERS,
    MAX_ROWS,
    OTHER_ROWS,
    Skyline,
    caption,
    facts,
    framed,
    moment,
    progress_line,
    wrapped,
)
from evenly.live.demo.fleet.plan import DISPATCHERS, LOADS
from evenly.live.demo.fleet.report import fleet_verdict
from evenly.live.demo.plan import POOLS, best_threshold

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evenly.live.demo.fleet.frame import FleetFrame
    from evenly.live.demo.fleet.report import FleetReport
    from evenly.live.demo.window_report import WindowReport

_FACTS = 33  # columns, minimum
_MAX_BAR = 6  # columns
_UP, _DOWN = "green", "bold red"


def screen(frame: FleetFrame, width: int, height: int) -> RenderableType:
    """Render a frame: the pools with one cell per session, and the numbers beside them."""
    rows = min(height - OTHER_ROWS - 1, MAX_ROWS)  # one more row for the news
    bar = min((width - _FACTS - AXIS - BORDERS) // POOLS, _MAX_BAR)
    side = bar * POOLS + AXIS + BORDERS
    skyline = Skyline(frame.sessions, frame.threshold, rows, bar, frame.pools_down)
    body = Table.grid()
    body.add_column(width=side)
    body.add_column(width=min(width - side, _FACTS + 10))
    body.add_row(framed("pools", skyline, caption(frame.threshold)), facts(_fact_rows(frame)))
    heading = Text(f"Sessions go straight to {POOLS} pools, picked by {DISPATCHERS} dispatchers", "bold")
    news = Text(frame.news or "both dispatchers share one store", "dim" if not frame.news else "")
    news.truncate(width - 1, overflow="ellipsis")
    return Group(heading, body, news, progress_line(frame.time, frame.seconds, width))


def _fact_rows(frame: FleetFrame) -> list[tuple[str, str, str]]:
    """Return the numbers at the right of the screen: name, value, style."""
    rows = [
        ("", "", ""),
        *(
            (f"dispatcher {number}", "up" if up else "down", _UP if up else _DOWN)
            for number, up in enumerate(frame.dispatchers_up, start=1)
        ),
        ("pools", _pools_text(frame), _DOWN if frame.pools_down else _UP),
        ("", "", ""),
        ("load now", f"{frame.load:.1f}", ""),
        ("best threshold", str(best_threshold(frame.load)), ""),
        ("learned threshold", "?" if frame.threshold is None else str(frame.threshold), "bold"),
        ("spread at this load", f"{frame.spread:.2f}", "bold"),
    ]
    messages = [
        ("", "", ""),
        ("messages/session", "", "dim"),
        ("  for tokens", f"{frame.per_session(frame.counts.tokens):.2f}", ""),
        ("  others", f"{frame.per_session(frame.counts.others):.2f}", ""),
    ]
    return [
        *rows,
        *messages,
        ("", "", ""),
        ("sessions begun", f"{frame.begun:,}", ""),
        ("  open", f"{sum(frame.sessions):,}", ""),
        ("  broken", f"{frame.cut:,}", _DOWN if frame.cut else ""),
    ]


def _pools_text(frame: FleetFrame) -> str:
    if not frame.pools_down:
        return f"{POOLS} up"
    return f"{len(frame.pools_down)} down"


def heading_line() -> str:
    """Return the first line of the output without a screen."""
    loads = ", then ".join(f"{load:g}" for load in LOADS)
    return f"Sessions go straight to {POOLS} pools, picked by {DISPATCHERS} dispatchers: load {loads}"


def line(frame: FleetFrame) -> str:
    """Render a frame as one line."""
    tokens, others = frame.per_session(frame.counts.tokens), frame.per_session(frame.counts.others)
    return (
        f"{moment(frame.time, frame.load, frame.threshold)}  "
        f"spread {frame.spread:.2f}  messages {tokens:.2f} + {others:.2f}  "
        f"sessions {frame.begun:,}  up: {sum(frame.dispatchers_up)} dispatchers, "
        f"{POOLS - len(frame.pools_down)} pools"
    )


def report_text(report: FleetReport) -> str:
    """Render the figures, one row per window, and the verdict."""
    rows = [
        "Measured while all pools served:",
        "                               spread over the pools      fullest pool",
        "time       load  threshold best evenly    jsq  stale    evenly    jsq  stale",
        *map(_window_row, report.windows),
    ]
    return "\n".join([*rows, "", *(wrapped(sentence) for sentence in fleet_verdict(report))])


def _window_row(window: WindowReport) -> str:
    sides = window.sides.values()
    spreads = " ".join(f"{side.spread:6.2f}" for side in sides)
    largest = " ".join(f"{side.max_tasks:6.1f}" for side in sides)
    when = f"{window.window.begin:.0f}-{window.window.end:.0f} s"
    return (
        f"{when:<10} {window.window.load:4.1f}  {window.thresholds[-1]:9} {window.window.optimum:4} {spreads}"
        f"    {largest}"
    )
