"""`evenly whatif` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenly.cli.text.common import WIDEST_TABLE
from evenly.frames import percent
from evenly.whatif.outcome import CROWDED_WORDS, OBSERVED
from evenly.whatif.wording import HOURS_NOTE, answer_words, hours_words, log_words, window_words

if TYPE_CHECKING:
    from rich.console import Console

    from evenly.whatif import Outcome, WhatIf

_UNKNOWN = "-"
_SHOWN = 80  # characters of a bad line


def print_whatif(result: WhatIf) -> None:
    """Print the output of `evenly whatif`: the answer, one row per policy, the verdicts, and what was assumed."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.width = max(console.width, WIDEST_TABLE)
    console.print(answer_words(result))
    console.print("")
    console.print(log_words(result))
    for bad in result.log.bad_lines:
        console.print(f"  line {bad.number}: {bad.reason}: {bad.text[:_SHOWN]}")
    console.print(window_words(result))
    cells = table_cells(result)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in cells:
        table.add_column(heading, justify="left" if heading == "policy" else "right", no_wrap=True)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*row)
    console.print(table)
    for outcome in result.outcomes:
        console.print(f"{outcome.label}: {outcome.verdict}")
    if result.limit is not None:
        _print_hours(console, result)
    console.print("")
    console.print("spread: standard deviation over servers; fullest: sessions on the fullest server, on average;")
    console.print(f"crowded: share of sessions on servers with {CROWDED_WORDS}")
    for note in (*result.log.notes, *result.notes):
        console.print(note)


def table_cells(result: WhatIf) -> dict[str, list[str]]:
    """Return the columns of the table, one row per policy and one for what really happened."""
    rows = result.outcomes
    cells = {
        "policy": [each.label for each in rows],
        "spread": [f"{each.spread:.3f}" for each in rows],
        "fullest": [f"{each.max_tasks:.2f}" for each in rows],
        "highest": [f"{each.highest:,}" for each in rows],
        "crowded": [percent(each.crowded_share) for each in rows],
        "messages": [
            _UNKNOWN if each.messages_per_session is None else f"{each.messages_per_session:.2f}" for each in rows
        ],
    }
    if any(each.window.lost_tasks for each in result.policies):
        shares = [percent(each.averages.lost_share) for each in rows]
        cells["lost"] = [
            _UNKNOWN if each.policy == OBSERVED else share for each, share in zip(rows, shares, strict=True)
        ]
    if result.limit is not None:
        cells["servers needed"] = [_needed(each) for each in rows]
    return cells


def _needed(outcome: Outcome) -> str:
    if outcome.sizing is None or outcome.sizing.servers is None:
        return _UNKNOWN
    return f"{outcome.sizing.servers:,}"


def _print_hours(console: Console, result: WhatIf) -> None:
    """Print the servers needed in each hour of the day, if the log has a wall clock."""
    from rich import box
    from rich.table import Table

    sized = [each for each in result.policies if each.sizing is not None and each.sizing.by_hour]
    if not sized:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=hours_words(result), title_justify="left")
    table.add_column("hour", no_wrap=True)
    for each in sized:
        table.add_column(each.label, justify="right", no_wrap=True)
    for hour in sorted({hour for each in sized if each.sizing for hour in each.sizing.by_hour}):
        found = [None if each.sizing is None else each.sizing.by_hour.get(hour) for each in sized]
        table.add_row(f"{hour:02}:00", *(_UNKNOWN if servers is None else f"{servers:,}" for servers in found))
    console.print(table)
    console.print(HOURS_NOTE)
