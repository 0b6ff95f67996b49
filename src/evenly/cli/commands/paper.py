"""`evenly paper`."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from evenly.cli import options
from evenly.cli.output import emit
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

if TYPE_CHECKING:
    from evenly.paper.experiments.lab import Lab
    from evenly.paper.reproduce import Reproduction

EXAMPLE = "Example: evenly paper --quick; evenly paper fig5 --out pictures"
_CPU_S, _QUICK_CPU_S = 75, 18  # processor time of a whole reproduction, measured on a two-core cloud machine
_WORTH_SAYING_S = 60
UNEXPECTED = 1  # exit code if a verdict differs from the one expected of a correct policy


def command(
    figures: options.Figures = None,
    quick: options.Quick = False,
    seed: options.Seed = None,
    out: options.Out = "evenly-paper",
    json: options.Json = None,
) -> None:
    """Reproduce the paper: draw every figure, test every claim, and write a report with a verdict on each claim.

    Exit code 1 means that a verdict differs from the one expected of a correct policy.
    """
    from evenly.paper.experiments.lab import Lab
    from evenly.paper.reproduce import check_names

    chosen = check_names(figures or [])
    lab = Lab(1 if seed is None else seed, quick=quick)
    folder = _folder(out)
    started = perf_counter()
    found = _work(lab, chosen, folder)
    facts = {"seed": lab.seed, "quick": quick, "seconds": perf_counter() - started, **_facts(found)}
    drawn: list[Path | None] = [file for drawing in found.drawings for file in drawing.files.values()]
    emit(lambda: facts, lambda: _show(found), as_json=bool(json), files=drawn if chosen else [found.report])
    if found.surprises:
        raise typer.Exit(UNEXPECTED)


def _folder(out: str) -> Path:
    """Return the folder to write to. An empty name would be the current folder, as Path reads it."""
    from evenly.files import ensure_folder

    if not out.strip():
        raise InputError(f"--out must name a folder, not {out!r}; for the current one, type --out .")
    return ensure_folder(Path(out))


def _work(lab: Lab, chosen: list[str], folder: Path) -> Reproduction:
    from evenly.paper.reproduce import check_targets, draw, reproduce
    from evenly.sim.compiling import compile_kernels
    from evenly.sim.run import usable_cores
    from evenly.sim.scenario import Scenario

    check_targets(chosen, folder)
    with progress_bar("drawing" if chosen else "reproducing") as progress:
        # The kernel of all policies of the paper, once, rather than in every worker.
        compile_kernels([Scenario(pools=1, load=1.0)])
        if chosen:
            return draw(chosen, lab, folder, progress)
        cores = usable_cores()
        seconds = (_QUICK_CPU_S if lab.quick else _CPU_S) / cores
        if seconds > _WORTH_SAYING_S:
            typer.echo(f"All figures and claims take about {seconds:.0f} seconds on this machine.", err=True)
        return reproduce(lab, folder, progress, cores)


def _facts(found: Reproduction) -> dict[str, Any]:
    """Return what `evenly paper --json` prints about figures and claims."""
    return {
        "figures": [drawing.to_dict() for drawing in found.drawings],
        "claims": [outcome.to_dict() for outcome in found.outcomes],
        "surprises": [outcome.claim.name for outcome in found.surprises],
        "report": None if found.report is None else str(found.report),
    }


def _show(found: Reproduction) -> None:
    """Print one line per claim, and the number of claims with each verdict."""
    from evenly.paper.claims.claim import Verdict
    from evenly.paper.report.wording import SYMBOLS

    for outcome in found.outcomes:
        claim = outcome.claim
        mark = (" (ours)" if claim.ours else "") + ("" if outcome.as_expected else "  <- unexpected")
        typer.echo(f"{SYMBOLS[outcome.verdict]:<2} {claim.place:<24} {claim.name}{mark}")
    if found.outcomes:
        verdicts = [outcome.verdict for outcome in found.outcomes if not outcome.claim.ours]
        ours = len(found.outcomes) - len(verdicts)
        typer.echo(f"\n{len(verdicts)} claims of the paper ({ours} more are ours):")
        for verdict in Verdict:
            typer.echo(f"{SYMBOLS[verdict]:<2} {verdicts.count(verdict):>3} {verdict.value}")
