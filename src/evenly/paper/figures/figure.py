"""A figure of the paper: its name, its caption, and how to draw it into a file or on a caller's figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from matplotlib.figure import Figure

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.paper.experiments.lab import Lab
from evenly.plots.style import house_style, saved_figure

FORMATS = (".png", ".svg")
P = TypeVar("P")  # the parameters of a figure: a dataclass of its experiment


@dataclass(frozen=True)
class Drawing:
    """A figure that has been drawn into files."""

    name: str
    title: str
    caption: str
    files: dict[str, Path]  # by format

    def to_dict(self) -> dict[str, Any]:
        """Return the drawing as JSON values."""
        files = [str(file) for file in self.files.values()]
        return {"name": self.name, "title": self.title, "caption": self.caption, "files": files}


@dataclass(frozen=True, kw_only=True)
class PaperFigure(Generic[P]):
    """A figure of the paper, for the paper's parameters or for others.

    `of_paper` returns the paper's parameters, at the length of a full or a quick run. `caption` states every
    parameter, and `draw` fills an empty matplotlib figure of `size` inches.
    """

    name: str
    title: str
    size: tuple[float, float]
    of_paper: Callable[[Lab], P]
    caption: Callable[[Lab, P], str]
    draw: Callable[[Lab, P, Figure], None]

    def files(self, folder: Path) -> dict[str, Path]:
        """Return the paths that `write` writes to, by format."""
        return {suffix: folder / f"{self.name}{suffix}" for suffix in FORMATS}

    def write(self, lab: Lab, folder: Path) -> Drawing:
        """Draw the figure with the paper's parameters and write it into a folder, once per format."""
        files, setup = self.files(folder), self.of_paper(lab)
        first, *others = files.values()
        with saved_figure(first, *self.size, *others) as figure:
            self.draw(lab, setup, figure)
        return Drawing(self.name, self.title, self.caption(lab, setup), files)

    def plot(
        self, setup: P, *, seed: int, figure: Figure | None = None, size: tuple[float, float] | None = None
    ) -> Figure:
        """Draw the figure with any parameters on `figure`, or on a new pyplot figure, and return it.

        The caption becomes its label, unless it has one already.
        """
        lab = Lab(seed)
        with _canvas(figure, *(size or self.size)) as drawn:
            self.draw(lab, setup, drawn)
            if not drawn.get_label():
                drawn.set_label(self.caption(lab, setup))
        return drawn


@contextmanager
def _canvas(figure: Figure | None, width: float, height: float) -> Iterator[Figure]:
    """Yield the figure to draw on, in our style. A new figure is closed again if drawing fails."""
    if figure is not None and not isinstance(figure, Figure):
        raise InputError(f"figure must be a matplotlib Figure, not {shown(figure)}.")
    from matplotlib import pyplot as plt  # noqa: PLC0415  (selects a backend, which writing files does not need)

    with house_style():
        drawn = plt.figure(figsize=(width, height), layout="constrained") if figure is None else figure
        if drawn.get_layout_engine() is None:
            drawn.set_layout_engine("constrained")  # places the legends outside the axes
        try:
            yield drawn
            drawn.draw_without_rendering()  # ticks get their style when first drawn
        except BaseException:
            if figure is None:
                plt.close(drawn)
            raise
