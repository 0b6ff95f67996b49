"""Lines over time as SVG, for the report: colors come from its style sheet, so that they follow its theme."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WIDTH, _HEIGHT = 360, 240  # as on a phone, so that the text stays readable there
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 8, 12, 34
_TICKS = 6
_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_SPANS = 3.0  # of a unit that the axis covers at least

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where it is, and what it says."""

    place: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A picture: the path of each line, the ticks of both axes, the shaded warm-up and perhaps a limit."""

    title: str
    axis: str
    paths: tuple[str, ...]
    mean: str  # the path of the mean; empty if there is none
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    warmup: float  # where it ends
    limit: float | None
    left: int = _LEFT
    right: int = _WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = _HEIGHT - _BOTTOM
    width: int = _WIDTH
    height: int = _HEIGHT


def draw_chart(
    title: str,
    times: Floats,
    lines: list[Floats],
    *,
    warmup: float,
    mean: Floats | None = None,
    limit: int | None = None,
) -> Chart:
    """Return the picture of lines over the same times."""
    end = float(times[-1])
    unit, name = next((each for each in _UNITS if end >= _SPANS * each[0]), _UNITS[-1])
    highest = max([*(float(line.max()) for line in lines), 0.0 if limit is None else float(limit), 1e-9])
    y_steps = _round_steps(0.0, highest)
    top = max(y_steps[-1], highest)

    def across(time: float) -> float:
        return _LEFT + time / end * (_WIDTH - _LEFT - _RIGHT)

    def up(value: float) -> float:
        return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)

    def path(values: Floats) -> str:
        points = (f"{across(x):.1f},{up(y):.1f}" for x, y in zip(times.tolist(), values.tolist(), strict=True))
        return f"M{' L'.join(points)}"

    return Chart(
        title=title,
        axis=f"{name} since the log's beginning",
        paths=tuple(path(line) for line in lines),
        mean="" if mean is None else path(mean),
        x_ticks=tuple(Tick(across(x * unit), f"{x:g}") for x in _round_steps(0.0, end / unit)),
        y_ticks=tuple(Tick(up(y), f"{y:g}") for y in y_steps),
        warmup=across(min(warmup, end)),
        limit=None if limit is None else up(limit),
    )


def _round_steps(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high`, about `_TICKS` of them."""
    raw = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    count = int((high - low) / step * (1 + 1e-9))
    return [round(low + place * step, 12) for place in range(count + 1)]
