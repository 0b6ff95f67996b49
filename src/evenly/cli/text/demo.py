"""The demo as people see it: a picture in a terminal, lines elsewhere, and the verdict."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Group
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evenly.live.demo.admin_client import messages_per_session, resync_per_session
from evenly.live.demo.plan import LOADS, POOLS
from evenly.live.demo.report import verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from evenly.live.demo.frame import View
    from evenly.live.demo.report import PhaseReport, Report
    from evenly.live.demo.stack import Stage

_RIVAL = "Envoy least_request"
_BELOW, _AT, _ABOVE, _RIVAL_STYLE = "green", "yellow", "cyan", "magenta"
_LEAST_WIDTH, _LEAST_HEIGHT = 80, 23
_MOST_ROWS = 20
_OTHER_ROWS = 6  # of a picture: heading, borders, caption, progress, and a last one that stays free
_AXIS = 3  # columns
_BORDERS = 4  # columns
_FACTS = 26  # columns, at least


def picture_fits(console: Console) -> bool:
    """Whether there is a terminal that is large and able enough."""
    width, height = console.size
    able = console.is_terminal and not console.is_dumb_terminal
    return able and width >= _LEAST_WIDTH and height >= _LEAST_HEIGHT


def picture(view: View, width: int, height: int) -> RenderableType:
    """One moment: both balancers side by side, one column a pool and one cell a session, and the numbers."""
    rows = min(height - _OTHER_ROWS, _MOST_ROWS)
    bar = (width - _FACTS - 2 * (_AXIS + _BORDERS)) // (2 * POOLS)
    side = bar * POOLS + _AXIS + _BORDERS
    threshold = None if view.picker is None else view.picker.threshold
    ours = Skyline(view.evenly.sessions, threshold, rows, bar)
    theirs = Skyline(view.rival.sessions, None, rows, bar)
    body = Table.grid()
    body.add_column(width=side)
    body.add_column(width=side)
    body.add_column(width=width - 2 * side)
    body.add_row(
        _framed("evenly", ours, _caption(threshold)),
        _framed(_RIVAL, theirs, Text("the same sessions", "dim")),
        _facts(view),
    )
    heading = Text(f"The same WebSocket sessions to {POOLS} pools each, balanced in two ways", "bold")
    return Group(heading, body, _progress(view, width))


def _framed(title: str, skyline: Skyline, caption: Text) -> Panel:
    below = Text(" " * _AXIS).append_text(caption)
    return Panel(Group(skyline, below), title=Text(title, "bold default"), border_style="bright_black")


class _Glyphs(NamedTuple):
    """What a picture is made of. The last column of a bar is narrower, so that neighbours stay apart."""

    full: str
    last: str
    more: str  # so many sessions or more
    line: str
    mark: str


_BLOCKS = _Glyphs("\u2588", "\u2589", "\u25b2", "\u2500", "\u25b8")
_ASCII = _Glyphs("#", "#", "^", "-", ">")


class Skyline:
    """Pools as columns of sessions; the color of a column says which token its pool has.

    The row of the threshold is the bright one.
    """

    def __init__(self, sessions: Sequence[int], threshold: int | None, rows: int, bar: int) -> None:
        self._sessions = sessions
        self._threshold = threshold
        self._rows = rows
        self._bar = bar

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Row by row, from the top."""
        glyphs = _ASCII if options.ascii_only else _BLOCKS
        for level in range(self._rows, 0, -1):
            yield self._row(level, glyphs)

    def _row(self, level: int, glyphs: _Glyphs) -> Text:
        at_threshold = level == self._threshold
        label = str(level) if at_threshold or level % 5 == 0 else ""
        row = Text(no_wrap=True)
        row.append(
            f"{label:>{_AXIS - 1}}{glyphs.mark if at_threshold else ' '}", "bold" if at_threshold else "dim"
        )
        gap = (glyphs.line if at_threshold else " ") * self._bar
        cell = glyphs.full * (self._bar - 1) + glyphs.last if level < self._rows else glyphs.more * self._bar
        for (filled, style), pools in groupby(self._sessions, lambda sessions: self._look(sessions, level)):
            row.append((cell if filled else gap) * len(list(pools)), style)
        return row

    def _look(self, sessions: int, level: int) -> tuple[bool, str]:
        """Whether a pool has a cell at this level, and in which style."""
        if sessions < level:
            return False, "dim"
        style = self._style(sessions)
        return True, style if level == self._threshold else f"dim {style}"

    def _style(self, sessions: int) -> str:
        if self._threshold is None:
            return _RIVAL_STYLE
        return _BELOW if sessions < self._threshold else _AT if sessions == self._threshold else _ABOVE


def _caption(threshold: int | None) -> Text:
    if threshold is None:
        return Text("no news yet", "dim")
    return Text.assemble(("below", _BELOW), " ", ("at", _AT), " ", ("above", _ABOVE), f" {threshold}")


def _facts(view: View) -> RenderableType:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column()
    table.add_column(justify="right")
    for name, value, style in _fact_rows(view):
        table.add_row(Text(f" {name}", style), Text(value, style))
    return table


def _fact_rows(view: View) -> list[tuple[str, str, str]]:
    """What is said beside the picture: name, value, style."""
    rows = [
        ("", "", ""),
        ("load now", f"{view.load:g}", ""),
        ("best threshold", str(view.optimum), ""),
    ]
    state = view.picker
    if state is not None and state.threshold is not None and state.tokens is not None:
        rows += [
            ("learned threshold", str(state.threshold), "bold"),
            ("green tokens", str(state.tokens.green), _BELOW),
            ("yellow tokens", str(state.tokens.yellow), _AT),
            ("", "", ""),
            ("messages a session", "", "dim"),
            ("  for its tokens", f"{messages_per_session(state):.2f}", ""),
            ("  for the threshold", f"{resync_per_session(state):.2f}", ""),
        ]
    started, failed = view.evenly.started + view.rival.started, view.evenly.failed + view.rival.failed
    return [
        *rows,
        ("", "", ""),
        ("spread at this load", "", "dim"),
        ("  evenly", f"{view.evenly.spread:.2f}", "bold"),
        ("  least_request", f"{view.rival.spread:.2f}", _RIVAL_STYLE),
        ("", "", ""),
        ("sessions begun", f"{started:,}", ""),
        ("  open", f"{sum(view.evenly.sessions) + sum(view.rival.sessions):,}", ""),
        ("  failed", f"{failed:,}", "red" if failed else ""),
    ]


def _progress(view: View, width: int) -> RenderableType:
    left = Text(f"{view.seconds - view.time:3.0f} s left", "dim")
    line = Table.grid(padding=(0, 1))
    bar = ProgressBar(
        total=view.seconds,
        completed=view.time,
        width=width - len(left) - 1,
        complete_style=_ABOVE,
        finished_style=_ABOVE,
    )
    line.add_row(bar, left)
    return line


def heading_line() -> str:
    """The first line where there is no picture."""
    loads = ", then ".join(f"{load:g}" for load in LOADS)
    return f"The same WebSocket sessions to {POOLS} pools each, balanced by evenly and by {_RIVAL}: load {loads}"


def line(view: View) -> str:
    """One moment in a line."""
    learned = "?" if view.picker is None else f"{view.picker.threshold}"
    messages = 0.0 if view.picker is None else messages_per_session(view.picker)
    return (
        f"{view.time:3.0f} s  load {view.load:4.1f}  threshold {learned:>2} (best {view.optimum:>2})  "
        f"spread {view.evenly.spread:.2f}, least_request {view.rival.spread:.2f}  "
        f"messages {messages:.2f}  sessions {view.evenly.started + view.rival.started:,}"
    )


def report_text(report: Report) -> str:
    """The figures, a row a phase, and the verdict."""
    rows = [
        f"Measured from {report.phases[0].window.begin:.0f} s after each change of the load on:",
        "                     spread over the pools         fullest pool",
        "load  threshold best evenly  ideal  least_request  evenly  ideal  least_request",
        *map(_phase_row, report.phases),
    ]
    return "\n".join([*rows, "", *(_wrapped(sentence) for sentence in verdict(report))])


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence, _LEAST_WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _phase_row(phase: PhaseReport) -> str:
    sides = (phase.evenly, phase.ideal, phase.rival)
    spreads = "{:6.2f} {:6.2f} {:14.2f}".format(*(side.spread for side in sides))
    largest = "{:7.1f} {:6.1f} {:14.1f}".format(*(side.max_tasks for side in sides))
    window = phase.window
    return f"{window.load:4.1f}  {phase.thresholds[-1]:9} {window.optimum:4} {spreads} {largest}"


def serving_text(stage: Stage) -> str:
    """Where to look while it goes on."""
    admin = f"http://{stage.admin}"
    return "\n".join(
        [
            f"Traffic goes on at load {LOADS[0]:g} until Ctrl-C.",
            f"  gateway   ws://{stage.evenly}",
            f"  state     {admin}/state",
            f"  metrics   {admin}/metrics",
            f"  API       {admin}/docs",
        ]
    )


def painter(console: Console, update: Callable[[RenderableType], None]) -> Callable[[View], None]:
    """Draws a view as large as the terminal is at the moment."""

    def show(view: View) -> None:
        width, height = console.size
        update(picture(view, max(width, _LEAST_WIDTH), max(height, _LEAST_HEIGHT)))

    return show
