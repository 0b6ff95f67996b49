"""The report: one HTML file that needs no network and is readable on a phone and on a desktop."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from evenly import __version__
from evenly.files import atomic_write
from evenly.paper.claims import SECTIONS
from evenly.paper.claims.claim import Outcome, Verdict
from evenly.paper.experiments.lab import Lab
from evenly.paper.figures.figure import Drawing
from evenly.paper.report.references import link_to_code, link_to_test, references
from evenly.paper.report.wording import SYMBOLS, measured_text

REPORT = "report.html"


def write_report(lab: Lab, drawings: Sequence[Drawing], outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write the report into a folder. On one machine, the same seed gives the same file, byte for byte."""
    path = folder / REPORT
    with atomic_write(path) as temporary:
        temporary.write_text(report_text(lab, drawings, outcomes, folder), encoding="utf-8")
    return path


def report_text(lab: Lab, drawings: Sequence[Drawing], outcomes: Sequence[Outcome], folder: Path) -> str:
    """Return the HTML. Links to code and tests are relative to the report's folder."""
    environment = Environment(
        loader=PackageLoader("evenly.paper.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"measured": measured_text, "embedded": _embedded}
    return environment.get_template("report.html.jinja").render(
        lab=lab,
        version=__version__,
        drawings=drawings,
        sections=_by_section(outcomes),
        counts=[(verdict, sum(o.verdict is verdict for o in outcomes if not o.claim.ours)) for verdict in Verdict],
        ours=sum(outcome.claim.ours for outcome in outcomes),
        surprises=[outcome for outcome in outcomes if not outcome.as_expected],
        total=len(outcomes),
        symbols=SYMBOLS,
        references=references(),
        link_to_code=partial(link_to_code, folder=folder),
        link_to_test=partial(link_to_test, folder=folder),
    )


def _by_section(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    by_name = {outcome.claim.name: outcome for outcome in outcomes}
    found = [(section, [by_name[claim.name] for claim in section.claims]) for section in SECTIONS]
    rows = [
        {"title": section.title, "place": section.place, "outcomes": [o for o in row if not o.claim.ours]}
        for section, row in found
    ]
    ours = [outcome for _, row in found for outcome in row if outcome.claim.ours]
    return [*rows, {"title": "What the paper does not state", "place": "ours", "outcomes": ours}]


def _embedded(drawing: Drawing) -> str:
    """Return the picture as a data URL."""
    return f"data:image/svg+xml;base64,{b64encode(drawing.files['.svg'].read_bytes()).decode()}"
