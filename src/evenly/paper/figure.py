"""A figure of the paper: what it is called, what its caption says, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from evenly.paper.experiments.lab import Lab
from evenly.plots.style import picture

FORMATS = (".png", ".svg")


@dataclass(frozen=True)
class Drawing:
    """A figure that was drawn."""

    name: str
    title: str
    caption: str
    files: dict[str, Path]  # by format

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        files = [str(file) for file in self.files.values()]
        return {"name": self.name, "title": self.title, "caption": self.caption, "files": files}


@dataclass(frozen=True, kw_only=True)
class PaperFigure:
    """A figure. Its caption states every parameter; `draw` fills an empty picture of `size` inches."""

    name: str
    title: str
    size: tuple[float, float]
    caption: Callable[[Lab], str]
    draw: Callable[[Lab, Figure], None]

    def files(self, folder: Path) -> dict[str, Path]:
        """Where it is drawn, by format."""
        return {suffix: folder / f"{self.name}{suffix}" for suffix in FORMATS}

    def write(self, lab: Lab, folder: Path) -> Drawing:
        """Draw it into a folder, in each format."""
        files = self.files(folder)
        first, *others = files.values()
        with picture(first, *self.size, *others) as figure:
            self.draw(lab, figure)
        return Drawing(self.name, self.title, self.caption(lab), files)
