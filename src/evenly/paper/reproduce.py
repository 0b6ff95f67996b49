"""The whole paper: draw its figures, measure its claims, write the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenly.errors import InputError
from evenly.files import check_writable
from evenly.inputs import shown
from evenly.paper.claims import CLAIMS
from evenly.paper.claims.claim import Outcome
from evenly.paper.experiments.lab import Lab
from evenly.paper.figures import FIGURES
from evenly.paper.figures.figure import Drawing
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
        """The claims whose verdict differs from the one expected of a correct policy."""
        return [outcome for outcome in self.outcomes if not outcome.as_expected]


def reproduce(lab: Lab, folder: Path, progress: Progress, workers: int) -> Reproduction:
    """Reproduce every figure and every claim in `workers` processes. The folder must exist."""
    check_targets((), folder)
    findings = study_all(lab, folder, progress, workers)
    drawn = {name: drawing for found in findings for name, drawing in found.drawings.items()}
    measured = {name: numbers for found in findings for name, numbers in found.measured.items()}
    drawings = tuple(drawn[name] for name in FIGURES)
    outcomes = tuple(Outcome(claim, measured[claim.name]) for claim in CLAIMS)
    return Reproduction(drawings, outcomes, write_report(lab, drawings, outcomes, folder))


def draw(names: Sequence[str], lab: Lab, folder: Path, progress: Progress) -> Reproduction:
    """Draw only the figures with these names. The folder must exist."""
    check_targets(names, folder)
    drawings = []
    for place, name in enumerate(names, 1):
        drawings.append(FIGURES[name].write(lab, folder))
        progress(place / len(names))
    return Reproduction(tuple(drawings), (), None)


def check_targets(names: Sequence[str], folder: Path) -> None:
    """Reject what cannot be drawn or written, before any work starts; no names stand for everything."""
    if not names:
        check_writable(folder / REPORT)
    _check_pictures(check_names(names) or FIGURES, folder)


def _check_pictures(names: Iterable[str], folder: Path) -> None:
    """Reject paths that cannot be written, before the work starts."""
    for name in names:
        for path in FIGURES[name].files(folder).values():
            check_writable(path)


def check_names(names: Sequence[str]) -> list[str]:
    """Return the names, or raise InputError unless they are different names of figures."""
    for place, name in enumerate(names):
        if name not in FIGURES:
            raise InputError(f"There is no figure {shown(name)}; the figures are {', '.join(FIGURES)}.")
        if name in names[:place]:
            raise InputError(f"Name each figure once; {name} is given twice.")
    return list(names)
