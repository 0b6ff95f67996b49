"""The demo's output: a screen in a terminal, lines elsewhere, and the verdict."""

from __future__ import annotations

import textwrap
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rich.console import Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evenly.live.demo.plan import ENVOYS, LOADS, POOLS, RIVAL, SELECTION_METHOD, best_threshold
from evenly.live.demo.report import verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from evenly.live.demo.frame import Frame
    from evenly.live.demo.report import Report
    from evenly.live.demo.stack import DemoStack
    from evenly.live.demo.window_report import WindowReport

F = TypeVar("F")

_BELOW, _AT, _ABOVE, _RIVAL_STYLE, _DOWN_STYLE = "green", "yellow", "cyan", "magenta", "bold red"
MIN_WIDTH, _MIN_HEIGHT = 80, 23
MAX_ROWS = 20
OTHER_ROWS = 6  # of the screen: heading, borders, caption, progress, and a free last row
_DOWN_ROWS = 3  # marked at a pool that is down
AXIS = 3  # columns
BORDERS = 4  # columns
_FACTS = 26  # columns, minimum


def screen_fits(console: Console) -> bool:
    """Return whether the output is a terminal that is large and capable enough."""
    width, height = console.size
    able = console.is_terminal and not console.is_dumb_terminal
    return able and width >= MIN_WIDTH and height >= _MIN_HEIGHT


def screen(frame: Frame, width: int, height: int) -> RenderableType:
    """Render a frame: the numbers, and both balancers with one column per pool and one cell per session."""
    rows = min(height - OTHER_ROWS, MAX_ROWS)
    bar = (width - _FACTS - 2 * (AXIS + BORDERS)) // (2 * POOLS)
    side = bar * POOLS + AXIS + BORDERS
    threshold = None if frame.picker is None else frame.picker.threshold
    ours = Skyline(frame.evenly.sessions, threshold, rows, bar)
    theirs = Skyline(frame.rival.sessions, None, rows, bar)
    body = Table.grid()
    body.add_column(width=side)
    body.add_column(width=side)
    body.add_column(width=width - 2 * side)
    body.add_row(
        framed("evenly", ours, caption(threshold)),
        framed(f"Envoy {RIVAL}", theirs, Text(SELECTION_METHOD, "dim")),
        Group(facts(_fact_rows(frame)), *_where(frame.dashboard)),
    )
    heading = Text(
        f"The same sessions through {ENVOYS} Envoys, balanced in two ways over {POOLS} pools each", "bold"
    )
    return Group(heading, body, progress_line(frame.time, frame.seconds, width))


def framed(title: str, skyline: Skyline, below: Text) -> Panel:
    """Render a skyline with a title, and a line below it."""
    below = Text(" " * AXIS).append_text(below)
    return Panel(Group(skyline, below), title=Text(title, "bold default"), border_style="bright_black")


class _Glyphs(NamedTuple):
    """Characters of the screen. The last column of a bar is narrower, to separate the bars."""

    full: str
    last: str
    more: str  # at the top row: this number of sessions or more
    line: str
    mark: str
    down: str


_BLOCKS = _Glyphs("\u2588", "\u2589", "\u25b2", "\u2500", "\u25b8", "\u2573")
_ASCII = _Glyphs("#", "#", "^", "-", ">", "x")


class _Cell(Enum):
    """What a pool has at a level."""

    FREE = 0
    FULL = 1
    DOWN = 2


class Skyline:
    """Pools as columns of sessions. The color of a column shows the token of its pool.

    The row of the threshold is bright. Pools that are down are marked.
    """

    def __init__(
        self,
        sessions: Sequence[int],
        threshold: int | None,
        rows: int,
        bar: int,
        down: frozenset[int] = frozenset(),
    ) -> None:
        self._sessions = [-1 if number in down else tasks for number, tasks in enumerate(sessions)]
        self._threshold = threshold
        self._rows = rows
        self._bar = bar

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render row by row, from the top."""
        glyphs = _ASCII if options.ascii_only else _BLOCKS
        for level in range(self._rows, 0, -1):
            yield self._row(level, glyphs)

    def _row(self, level: int, glyphs: _Glyphs) -> Text:
        at_threshold = level == self._threshold
        label = str(level) if at_threshold or level % 5 == 0 else ""
        row = Text(no_wrap=True)
        row.append(f"{label:>{AXIS - 1}}{glyphs.mark if at_threshold else ' '}", "bold" if at_threshold else "dim")
        gap = (glyphs.line if at_threshold else " ") * self._bar
        cell = glyphs.full * (self._bar - 1) + glyphs.last if level < self._rows else glyphs.more * self._bar
        down = f"{glyphs.down * max(self._bar - 1, 1):{self._bar}}"
        cells = {_Cell.FREE: gap, _Cell.FULL: cell, _Cell.DOWN: down}
        for (kind, style), pools in groupby(self._sessions, lambda sessions: self._look(sessions, level)):
            row.append(cells[kind] * len(list(pools)), style)
        return row

    def _look(self, sessions: int, level: int) -> tuple[_Cell, str]:
        """Return what a pool has at this level, and its style."""
        if sessions < 0 and level <= _DOWN_ROWS:
            return _Cell.DOWN, _DOWN_STYLE
        if sessions < level:
            return _Cell.FREE, "dim"
        style = self._style(sessions)
        return _Cell.FULL, style if level == self._threshold else f"dim {style}"

    def _style(self, sessions: int) -> str:
        if self._threshold is None:
            return _RIVAL_STYLE
        return _BELOW if sessions < self._threshold else _AT if sessions == self._threshold else _ABOVE


def caption(threshold: int | None) -> Text:
    """Explain the colors of a skyline."""
    if threshold is None:
        return Text("no data yet", "dim")
    return Text.assemble(("below", _BELOW), " ", ("at", _AT), " ", ("above", _ABOVE), f" {threshold}")


def facts(rows: Iterable[tuple[str, str, str]]) -> RenderableType:
    """Render numbers, given as name, value and style."""
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column()
    table.add_column(justify="right")
    for name, value, style in rows:
        table.add_row(Text(f" {name}", style), Text(value, style))
    return table


def _fact_rows(frame: Frame) -> list[tuple[str, str, str]]:
    """Return the numbers at the right of the screen: name, value, style."""
    rows = [
        ("load now", f"{frame.load:g}", ""),
        ("best threshold", str(best_threshold(frame.load)), ""),
    ]
    if frame.picker is not None and frame.picker.threshold is not None:
        threshold, sessions = frame.picker.threshold, frame.evenly.sessions
        rows += [
            ("learned threshold", str(threshold), "bold"),
            ("  pools below it", str(sum(each < threshold for each in sessions)), _BELOW),
            ("  pools at it", str(sessions.count(threshold)), _AT),
            ("  pools above it", str(sum(each > threshold for each in sessions)), _ABOVE),
        ]
    started, failed = frame.evenly.started + frame.rival.started, frame.evenly.failed + frame.rival.failed
    return [
        *rows,
        ("", "", ""),
        ("spread at this load", "", "dim"),
        ("  evenly", f"{frame.evenly.spread:.2f}", "bold"),
        (f"  {RIVAL}", f"{frame.rival.spread:.2f}", _RIVAL_STYLE),
        ("", "", ""),
        ("sessions started", f"{started:,}", ""),
        ("  open", f"{sum(frame.evenly.sessions) + sum(frame.rival.sessions):,}", ""),
        ("  failed", f"{failed:,}", "red" if failed else ""),
    ]


def _where(dashboard: str) -> list[Text]:
    """Return the last lines at the right of the screen: the address to open in a browser."""
    return [Text(), Text(" dashboard", "dim"), Text(f" {dashboard}", no_wrap=True)]


def progress_line(time: float, seconds: float, width: int) -> RenderableType:
    """Render how much of the run is over."""
    left = Text(f"{seconds - time:3.0f} s left", "dim")
    line = Table.grid(padding=(0, 1))
    bar = ProgressBar(
        total=seconds,
        completed=time,
        width=width - len(left) - 1,
        complete_style=_ABOVE,
        finished_style=_ABOVE,
    )
    line.add_row(bar, left)
    return line


def heading_line() -> str:
    """Return the first line of the output without a screen."""
    loads = ", then ".join(f"{load:g}" for load in LOADS)
    return (
        f"The same WebSocket sessions through {ENVOYS} Envoys over {POOLS} pools each, balanced by evenly and by "
        f"Envoy's {RIVAL} with selection_method {SELECTION_METHOD}: load {loads}"
    )


def dashboard_line(dashboard: str) -> str:
    """Return the line that names the address of the dashboard."""
    return f"dashboard {dashboard}"


def line(frame: Frame) -> str:
    """Render a frame as one line."""
    threshold = None if frame.picker is None else frame.picker.threshold
    return (
        f"{moment(frame.time, frame.load, threshold)}  spread {frame.evenly.spread:.2f}, "
        f"{RIVAL} {frame.rival.spread:.2f}  sessions {frame.evenly.started + frame.rival.started:,}"
    )


def moment(time: float, load: float, threshold: int | None) -> str:
    """Return the beginning of a line: the time, the load, and the learned threshold."""
    learned = "?" if threshold is None else str(threshold)
    return f"{time:3.0f} s  load {load:4.1f}  threshold {learned:>2} (best {best_threshold(load):>2})"


def report_text(report: Report) -> str:
    """Render the figures, one row per phase, and the verdict."""
    rows = [
        f"Measured from {report.phases[0].window.begin:.0f} s after each load change:",
        "                     spread over the pools         fullest pool",
        f"load  threshold best evenly  ideal  {RIVAL}  evenly  ideal  {RIVAL}",
        *map(_phase_row, report.phases),
    ]
    return "\n".join([*rows, "", *(wrapped(sentence) for sentence in verdict(report))])


def wrapped(sentence: str) -> str:
    """Break a sentence into lines."""
    return textwrap.fill(sentence, MIN_WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _phase_row(phase: WindowReport) -> str:
    sides = phase.sides.values()
    spreads = "{:6.2f} {:6.2f} {:14.2f}".format(*(side.spread for side in sides))
    largest = "{:7.1f} {:6.1f} {:14.1f}".format(*(side.max_tasks for side in sides))
    window = phase.window
    return f"{window.load:4.1f}  {phase.thresholds[-1]:9} {window.optimum:4} {spreads} {largest}"


def serving_text(stack: DemoStack) -> str:
    """Return the addresses to look at while the demo keeps running."""
    admin = f"http://{stack.admin}"
    return "\n".join(
        [
            f"Traffic continues at load {LOADS[0]:g} until Ctrl-C.",
            f"  dashboard {stack.dashboard}",
            f"  gateways  {', '.join(f'ws://{gateway}' for gateway in stack.evenly)}",
            f"  state     {admin}/state",
            f"  metrics   {admin}/metrics",
            f"  API       {admin}/docs",
        ]
    )


def painter(
    console: Console,
    update: Callable[[RenderableType], None],
    draw: Callable[[F, int, int], RenderableType],
) -> Callable[[F], None]:
    """Return a function that draws a frame at the terminal's current size."""

    def show(frame: F) -> None:
        width, height = console.size
        update(draw(frame, max(width, MIN_WIDTH), max(height, _MIN_HEIGHT)))

    return show
