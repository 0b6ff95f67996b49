"""All the figures."""

from __future__ import annotations

from evenly.paper import fig1, fig2, fig3, fig4, fig5, fig6
from evenly.paper.figure import PaperFigure

FIGURES: dict[str, PaperFigure] = {
    module.FIGURE.name: module.FIGURE for module in (fig1, fig2, fig3, fig4, fig5, fig6)
}
