"""The whole paper: draw the figures, measure the claims, write the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenly.errors import InputError
from evenly.paper.claim import Claim, Outcome
from evenly.paper.claims import CLAIMS
from evenly.paper.figure import Drawing, PaperFigure
from evenly.paper.figures import FIGURES
from evenly.paper.lab import Lab
from evenly.paper.report import write_report

Progress = Callable[[float], None]  # hears of the fraction done


@dataclass(frozen=True)
class Reproduction:
    """What came out."""

    drawings: tuple[Drawing, ...]
    outcomes: tuple[Outcome, ...]
    report: Path | None

    @property
    def surprises(self) -> list[Outcome]:
        """Claims with another verdict than a correct policy comes to."""
        return [outcome for outcome in self.outcomes if not outcome.as_expected]


def reproduce(lab: Lab, folder: Path, progress: Progress = lambda _: None) -> Reproduction:
    """Every figure and every claim, into a folder that exists."""
    steps = len(FIGURES) + len(CLAIMS)
    drawings = draw(list(FIGURES), lab, folder, lambda done: progress(done * len(FIGURES) / steps))
    outcomes = []
    for place, claim in enumerate(CLAIMS, 1 + len(FIGURES)):
        outcomes.append(examine(claim, lab))
        progress(place / steps)
    report = write_report(lab, drawings, outcomes, folder)
    return Reproduction(drawings, tuple(outcomes), report)


def draw(names: Sequence[str], lab: Lab, folder: Path, progress: Progress = lambda _: None) -> tuple[Drawing, ...]:
    """The figures of these names, into a folder that exists."""
    drawings = []
    for place, figure in enumerate([find_figure(name) for name in names], 1):
        drawings.append(figure.write(lab, folder))
        progress(place / len(names))
    return tuple(drawings)


def find_figure(name: str) -> PaperFigure:
    """The figure of this name."""
    if name not in FIGURES:
        raise InputError(f"There is no figure {name!r}; the figures are {', '.join(FIGURES)}.")
    return FIGURES[name]


def examine(claim: Claim, lab: Lab) -> Outcome:
    """Measure what a claim is about."""
    return Outcome(claim, tuple(claim.measure(lab)))
