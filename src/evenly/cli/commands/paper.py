"""`evenly paper`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from evenly.cli import options
from evenly.cli.output import emit
from evenly.cli.progress import progress_bar

if TYPE_CHECKING:
    from evenly.paper.experiments.lab import Lab
    from evenly.paper.reproduce import Reproduction

EXAMPLE = "Example: evenly paper --quick; evenly paper fig5 --out pictures"
UNEXPECTED = 1  # the exit code when a verdict is not what it should be


def command(
    figures: options.Figures = None,
    quick: options.Quick = False,
    seed: options.Seed = None,
    out: options.Out = Path("evenly-paper"),
    json: options.Json = None,
) -> None:
    """Reproduce the paper: draw every figure, test every claim, and write a report with a verdict on each claim.

    Exit code 1 means that a verdict is not what a correct policy comes to.
    """
    from evenly.files import ensure_folder
    from evenly.paper.experiments.lab import Lab
    from evenly.paper.reproduce import find_figure

    chosen = [find_figure(name).name for name in figures or []]
    lab = Lab(1 if seed is None else seed, quick=quick)
    folder = ensure_folder(out)
    started = perf_counter()
    found = _work(lab, chosen, folder)
    facts = {"seed": lab.seed, "quick": quick, "seconds": perf_counter() - started, **_facts(found)}
    drawn: list[Path | None] = [file for drawing in found.drawings for file in drawing.files.values()]
    emit(lambda: facts, lambda: _show(found), as_json=bool(json), files=drawn if chosen else [found.report])
    if found.surprises:
        raise typer.Exit(UNEXPECTED)


def _work(lab: Lab, chosen: list[str], folder: Path) -> Reproduction:
    from evenly.paper.reproduce import draw, reproduce
    from evenly.sim.run import usable_cores
    from evenly.sim.simulation import compile_all_kernels

    with progress_bar("drawing" if chosen else "reproducing") as progress:
        compile_all_kernels()  # once, rather than in every worker
        if chosen:
            return draw(chosen, lab, folder, progress)
        return reproduce(lab, folder, progress, usable_cores())


def _facts(found: Reproduction) -> dict[str, Any]:
    """The JSON object of `evenly paper --json`, but for the run itself."""
    return {
        "figures": [drawing.to_dict() for drawing in found.drawings],
        "claims": [outcome.to_dict() for outcome in found.outcomes],
        "surprises": [outcome.claim.name for outcome in found.surprises],
        "report": None if found.report is None else str(found.report),
    }


def _show(found: Reproduction) -> None:
    """A line for each claim, and the count of verdicts."""
    from evenly.paper.claims.claim import Verdict
    from evenly.paper.report.wording import SYMBOLS

    for outcome in found.outcomes:
        mark = "" if outcome.as_expected else "  <- should be different"
        claim = outcome.claim
        typer.echo(f"{SYMBOLS[outcome.verdict]:<2} {claim.place:<24} {claim.name}{mark}")
    if found.outcomes:
        verdicts = [outcome.verdict for outcome in found.outcomes]
        counts = "; ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in Verdict)
        typer.echo(f"\n{len(verdicts)} claims: {counts}")
