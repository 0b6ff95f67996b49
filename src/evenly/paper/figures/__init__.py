"""The paper's figures, with the paper's parameters or your own.

Each function takes keywords, whose defaults are the paper's values. It draws on `figure`, or on a new pyplot
figure, and returns the Figure. It writes no file. The caption states the parameters: `figure.get_label()`.
"""

from __future__ import annotations

from typing import Any

from evenly.paper.figures import fig1, fig2, fig3, fig4, fig5, fig6
from evenly.paper.figures.fig1 import state_diagram
from evenly.paper.figures.fig2 import equilibria
from evenly.paper.figures.fig3 import oscillation
from evenly.paper.figures.fig4 import settling
from evenly.paper.figures.fig5 import resource_shares
from evenly.paper.figures.fig6 import varying_demand
from evenly.paper.figures.figure import PaperFigure

__all__ = [
    "FIGURES",
    "equilibria",
    "oscillation",
    "resource_shares",
    "settling",
    "state_diagram",
    "varying_demand",
]

FIGURES: dict[str, PaperFigure[Any]] = {
    figure.name: figure
    for figure in (fig1.FIGURE, fig2.FIGURE, fig3.FIGURE, fig4.FIGURE, fig5.FIGURE, fig6.FIGURE)
}
