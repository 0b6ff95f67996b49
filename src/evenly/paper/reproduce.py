"""The whole paper: draw the figures, measure the claims, write the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenly.errors import InputError
from evenly.files import check_writable
from evenly.paper.claims import CLAIMS
from evenly.paper.claims.claim import Outcome
from evenly.paper.experiments.lab import Lab
from evenly.paper.figures import FIGURES
from evenly.paper.figures.figure import Drawing, PaperFigure
from evenly.paper.parallel import Progress, study_all
from evenly.paper.report.write import REPORT, write_report


@dataclass(frozen=True)
class Reproduction:
    """The drawings, the outcomes of the claims and the path of the report."""

    drawings: tuple[Drawing, ...]
    outcomes: tuple[Outcome, ...]
    report: Path | None

    @property
    def surprises(self) -> list[Outcome]:
        """Claims whose verdict is not the one that a correct policy gives."""
        return [outcome for outcome in self.outcomes if not outcome.as_expected]


def reproduce(lab: Lab, folder: Path, progress: Progress, workers: int) -> Reproduction:
    """Reproduce every figure and every claim in `workers` processes, into a folder that exists."""
    check_writable(folder / REPORT)
    _check_pictures(FIGURES, folder)
    findings = study_all(lab, folder, progress, workers)
    drawn = {name: drawing for found in findings for name, drawing in found.drawings.items()}
    measured = {name: numbers for found in findings for name, numbers in found.measured.items()}
    drawings = tuple(drawn[name] for name in FIGURES)
    outcomes = tuple(Outcome(claim, measured[claim.name]) for claim in CLAIMS)
    return Reproduction(drawings, outcomes, write_report(lab, drawings, outcomes, folder))


def draw(names: Sequence[str], lab: Lab, folder: Path, progress: Progress) -> Reproduction:
    """Draw only the figures of these names, into a folder that exists."""
    _check_pictures(names, folder)
    drawings = []
    for place, figure in enumerate([find_figure(name) for name in names], 1):
        drawings.append(figure.write(lab, folder))
        progress(place / len(names))
    return Reproduction(tuple(drawings), (), None)


def _check_pictures(names: Iterable[str], folder: Path) -> None:
    """Refuse paths that cannot be written before the work starts."""
    for name in names:
        for path in find_figure(name).files(folder).values():
            check_writable(path)


def find_figure(name: str) -> PaperFigure[Any]:
    """Return the figure of this name, or raise an InputError that lists the names."""
    if name not in FIGURES:
        raise InputError(f"There is no figure {name!r}; the figures are {', '.join(FIGURES)}.")
    return FIGURES[name]
