"""The report of a replay: one HTML file that needs no network, in light and dark, to send to a colleague."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from evenly.files import atomic_write
from evenly.frames import percent
from evenly.whatif.chart import draw_chart
from evenly.whatif.outcome import CROWDED_WORDS
from evenly.whatif.result import WhatIf
from evenly.whatif.wording import HOURS_NOTE, answer_words, hours_words, log_words, window_words


def write_report(result: WhatIf, path: str | Path) -> None:
    """Write the report to a file."""
    with atomic_write(Path(path)) as temporary:
        temporary.write_text(report_text(result), encoding="utf-8")


def report_text(result: WhatIf) -> str:
    """Return the HTML. Names from the log are escaped."""
    environment = Environment(
        loader=PackageLoader("evenly.whatif", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    rows, window = result.outcomes, result.window
    about: dict[str, Any] = {"warmup": window.warmup}
    charts = [
        draw_chart(
            "Sessions on the fullest server",
            rows[0].times,
            [each.fullest_at for each in rows],
            mean=rows[-1].mean_at,
            limit=result.limit,
            **about,
        ),
        draw_chart("Spread over servers", rows[0].times, [each.spread_at for each in rows], **about),
    ]
    sized = [each for each in result.policies if each.sizing is not None and each.sizing.by_hour]
    return environment.get_template("report.html.jinja").render(
        result=result,
        rows=rows,
        charts=charts,
        sized=sized,
        hours=sorted({hour for each in sized if each.sizing for hour in each.sizing.by_hour}),
        answer_words=answer_words(result),
        log_words=log_words(result),
        window_words=window_words(result),
        hours_words=hours_words(result),
        hours_note=HOURS_NOTE,
        crowded_words=CROWDED_WORDS,
        span=_span(result),
    )


def _span(result: WhatIf) -> str:
    """Return the wall-clock times of the measured part, if the log has them."""
    if result.log.origin is None:
        return ""
    ends = [
        datetime.fromtimestamp(result.log.origin + time, UTC) for time in (result.window.first, result.window.last)
    ]
    zone = "UTC" if result.log.utc else "by the log's clock"
    return " to ".join(f"{end:%Y-%m-%d %H:%M}" for end in ends) + f" {zone}"
