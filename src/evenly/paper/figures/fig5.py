"""The resources that tasks receive under four policies, on the same arrivals and departures.

Paper: Sec. 5.2, Fig. 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from evenly.paper.experiments.inputs import as_tuple
from evenly.paper.experiments.lab import Lab
from evenly.paper.experiments.policies import PolicyRuns, of_paper, results
from evenly.paper.figures.figure import PaperFigure
from evenly.policies import COMPARED
from evenly.sim import Comparison
from evenly.theory.tuning import Alpha

_SEE = {1: "The policy sees its", 2: "Both policies see the same", 3: "The three policies see the same"}


def resource_shares(
    *,
    policies: str | Sequence[str] = COMPARED,
    pools: int = 500,
    load: float = 10.5,
    alpha: Alpha = "0.96",
    horizon: float = 3220.0,
    warmup: float = 20.0,
    seed: int = 1,
    figure: Figure | None = None,
) -> Figure:
    """Draw the share of tasks by the number of tasks in their pool, one line per policy.

    `policies` are any of random, power-of-d (which samples two pools), jsq and threshold (which learns with
    `alpha`).

    Paper: Fig. 5.
    """
    setup = PolicyRuns(
        policies=as_tuple("policies", policies, len(COMPARED)),
        pools=pools,
        load=load,
        alpha=alpha,
        horizon=horizon,
        warmup=warmup,
    )
    return FIGURE.plot(setup, seed=seed, figure=figure)


def _caption(lab: Lab, setup: PolicyRuns) -> str:
    seen = _SEE.get(len(setup.policies), "The four policies see the same")
    learns = (
        " The paper runs the threshold policy at the optimal threshold; here the policy learns it during the "
        f"warm-up, from threshold 0 with alpha {setup.alpha}."
        if "threshold" in setup.policies
        else ""
    )
    return (
        f"Share of tasks that are in a pool with i tasks, for load {setup.load:g} and {setup.pools} "
        f"pools, weighted by task and by time; such a task gets 1/i of its pool's resources. {seen}"
        f" arrivals and departures from an empty system, time {setup.warmup:g} to {setup.horizon:g}, seed "
        f"{lab.seed}.{learns} Spread is the standard deviation of tasks over "
        f"pools, averaged over time.{_same_lines(setup)}"
    )


def _same_lines(setup: PolicyRuns) -> str:
    """Return what the paper's figure shows best. With another load or alpha the lines may differ."""
    if (
        setup.load == PolicyRuns.load
        and setup.alpha == PolicyRuns.alpha
        and {"jsq", "threshold"} <= set(setup.policies)
    ):
        return " The lines of JSQ and the threshold policy coincide."
    return ""


def _draw(lab: Lab, setup: PolicyRuns, figure: Figure) -> None:
    Comparison(results=tuple(results(lab, setup).values())).plot_panels(figure=figure, title="")


FIGURE = PaperFigure(
    name="fig5",
    title="Resources that tasks receive under four policies",
    size=(7.6, 5.0),
    of_paper=of_paper,
    caption=_caption,
    draw=_draw,
)
