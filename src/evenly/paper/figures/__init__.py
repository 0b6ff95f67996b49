"""All the figures."""

from __future__ import annotations

from evenly.paper.figure import PaperFigure
from evenly.paper.figures import fig1, fig2, fig3, fig4, fig5, fig6

FIGURES: dict[str, PaperFigure] = {
    module.FIGURE.name: module.FIGURE for module in (fig1, fig2, fig3, fig4, fig5, fig6)
}
