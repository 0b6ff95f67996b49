"""A figure of the paper: what it is called, what its caption says, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from evenly.paper.lab import Lab
from evenly.plots.style import picture

FORMATS = (".png", ".svg")


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """A figure. Its caption states every parameter; `draw` fills an empty picture of `size` inches."""

    name: str
    title: str
    size: tuple[float, float]
    caption: Callable[[Lab], str]
    draw: Callable[[Lab, Figure], None]

    def write(self, lab: Lab, folder: Path) -> list[Path]:
        """Draw it into a folder, once in each format."""
        paths = [folder / f"{self.name}{suffix}" for suffix in FORMATS]
        for path in paths:
            with picture(path, *self.size) as figure:
                self.draw(lab, figure)
        return paths
