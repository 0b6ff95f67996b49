"""Pictures of a sweep: which panels there are, and the numbers in each. Drawing is in `evenly.plots.maps`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.sweeps.cube import Axis, axes_of, dense
from evenly.sweeps.predictions import fluid_value
from evenly.sweeps.values import CI, VALUES, value_name

if TYPE_CHECKING:
    from evenly.plots.maps import Fluid, Panel
    from evenly.sweeps.result import SweepResult

MAX_PANELS = 60
_FINE = 61  # places along an axis of a prediction
_AVERAGED = ("seed",)  # axes of a sweep that a picture averages over


@dataclass(frozen=True)
class Picture:
    """What a picture shows: the values, and which options vary along x, from row to row, and from panel to panel.

    The rows of a map are its places along y. Otherwise each row is a line, and without an option for rows there is
    one line.
    """

    names: tuple[str, ...]
    across: Axis
    rows: Axis | None
    facets: Axis | None
    is_map: bool

    @property
    def panels(self) -> int:
        """The number of panels: one per value and facet."""
        return len(self.names) * (len(self.facets.rows) if self.facets else 1)

    @property
    def size(self) -> tuple[float, float]:
        """The width and height in inches that suit it."""
        from evenly.plots.maps import size

        return size(self.panels, len(self.names))


def make_panels(result: SweepResult, picture: Picture) -> list[Panel]:
    """Return the panels of a picture, in rows of one value each."""
    from evenly.plots import maps

    manifest = result.manifest
    axes, rows = axes_of(manifest), result.rows()
    across, up, facets = picture.across, picture.rows, picture.facets
    panels = []
    for name in picture.names:
        values = _slices(dense(rows, axes, name), axes, picture, _mean)
        widths = _slices(dense(rows, axes, name + CI), axes, picture, _width_of_mean)
        scale = maps.Scale.of(np.array(values), np.array(widths))
        for place, row in enumerate(facets.rows if facets else ((),)):
            here = dict(zip(facets.names if facets else (), row, strict=True))
            panels.append(
                maps.Panel(
                    title=", ".join([_words(name), *(f"{option} {given}" for option, given in here.items())]),
                    value=_words(name),
                    x=_numbers(across),
                    x_label=_words(across.name),
                    y=_numbers(up) if up and picture.is_map else _names(up),
                    y_label=_words(up.name) if up else "",
                    values=values[place],
                    widths=widths[place] if VALUES[name].interval else None,
                    scale=scale,
                    fluid=_fluid(name, manifest, picture, here),
                    is_map=picture.is_map,
                )
            )
    return panels


def read_picture(
    manifest: Mapping[str, Any],
    *,
    value: str | Sequence[str] | None,
    x: str | None,
    y: str | None,
    facet: str | None = None,
) -> Picture:
    """Return the picture that is asked for, or raise InputError if there is no such picture of the sweep.

    With x and y, it is a map. With x alone, it has a line per value of the next option. With neither, it is a map
    if two options have enough numbers for one, else it has lines over the option with the most values.
    """
    given = (
        value.split(",") if isinstance(value, str) else [manifest["values"][0]] if value is None else list(value)
    )
    names = [value_name(each) for each in given]
    for name in names:
        if name not in manifest["values"]:
            raise InputError(f"The sweep does not record {name}: add it to values.")
        if VALUES[name].is_list:
            raise InputError(f"{name} is a list at each point, which a map cannot show.")
    axes = axes_of(manifest)
    if not axes:
        raise InputError("A picture needs an option with more than one value.")
    picture = Picture(tuple(names), *_chosen(axes, x, y, facet))
    if picture.panels > MAX_PANELS:
        raise InputError(f"A picture has at most {MAX_PANELS} panels, not {picture.panels}.")
    return picture


def _chosen(
    axes: list[Axis], x: str | None, y: str | None, facet: str | None
) -> tuple[Axis, Axis | None, Axis | None, bool]:
    """Return the axes for x, the rows and the facets, and whether the rows make a map.

    They are as asked for, else those that are left, in their order.
    """
    from evenly.plots.maps import FINE, MOST_LINES

    across, up, facets = asked = [
        None if name is None else _find(axes, option, name)
        for option, name in (("x", x), ("y", y), ("facet", facet))
    ]
    taken = [frozenset(axis.names) for axis in asked if axis is not None]
    if len({*taken}) < len(taken):
        raise InputError("x, y and facet must be different options.")
    left = [axis for axis in axes if frozenset(axis.names) not in taken and axis.name not in _AVERAGED]
    left.sort(key=lambda axis: not _is_numeric(axis))  # names make poor axes
    if across is None and up is None:
        fine = [axis for axis in left if _is_numeric(axis) and len(axis.rows) >= FINE]
        across, up = fine[:2] if len(fine) > 1 else (None, None)
    if across is None:
        across = max(left or axes, key=lambda axis: (_is_numeric(axis), up is None and len(axis.rows)))
    is_map = up is not None
    left = [axis for axis in left if axis not in (across, up)]
    if up is None and left:
        up = next((axis for axis in left if len(axis.rows) <= MOST_LINES), left[0])
        is_map = len(up.rows) > MOST_LINES
        left.remove(up)
    facets = facets or (left.pop(0) if left else None)
    if left:
        extra = " and ".join(axis.name for axis in left)
        raise InputError(f"A picture has at most three axes, x, y and facet: give {extra} one value only.")
    return across, up, facets, is_map


def _find(axes: list[Axis], option: str, name: str) -> Axis:
    wanted = name.strip().replace("-", "_")
    for axis in axes:
        if wanted in axis.names:
            place = axis.names.index(wanted)
            others = [each for each in range(len(axis.names)) if each != place]
            names = (wanted, *(axis.names[each] for each in others))
            return Axis(names, tuple((row[place], *(row[each] for each in others)) for row in axis.rows))
    known = ", ".join(name for axis in axes for name in axis.names)
    raise InputError(f"{option} must be an option with several values ({known}), not {shown(name)}.")


def _slices(
    cube: NDArray[np.float64], axes: list[Axis], picture: Picture, mean: Callable[..., NDArray[np.float64]]
) -> list[NDArray[np.float64]]:
    """Return one array per facet, with a row per line or y and a column per x: the `mean` over all other axes."""
    order = [set(axis.names) for axis in axes]
    wanted = [axis for axis in (picture.facets, picture.rows, picture.across) if axis is not None]
    places = [order.index(set(axis.names)) for axis in wanted]
    rest = tuple(place for place in range(cube.ndim) if place not in places)
    moved = np.transpose(cube, (*rest, *places))
    with np.errstate(invalid="ignore"):
        flat = mean(moved.reshape(-1, *(len(axis.rows) for axis in wanted)))
    across = len(picture.across.rows)
    return list(flat.reshape(-1, flat.size // across // (len(flat) if picture.facets else 1), across))


def _mean(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(samples.mean(axis=0))


def _width_of_mean(widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the half-width of a mean of independent samples."""
    return np.asarray(np.sqrt((widths**2).sum(axis=0)) / len(widths))


def _numbers(axis: Axis) -> Sequence[Any]:
    return [row[0] for row in axis.rows]


def _names(axis: Axis | None) -> Sequence[str]:
    """Return the names of lines: of policies and the like, the value says what it is."""
    if axis is None:
        return [""]
    return [f"{_words(axis.name)} {value:g}" if _is_numeric(axis) else str(value) for value in _numbers(axis)]


def _is_numeric(axis: Axis) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in _numbers(axis))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _fluid(name: str, manifest: Mapping[str, Any], picture: Picture, facet: Mapping[str, Any]) -> Fluid | None:
    """Return the prediction of the fluid limit, on a fine grid along the axes; None if there is none."""
    common = {option: given[0] for option, given in manifest["options"].items()} | dict(facet)
    across, up = _refined(picture.across), picture.rows
    if up is not None and picture.is_map:
        up = _refined(up)
    found = np.array(
        [
            [fluid_value(name, common | here | dict(zip(across.names, each, strict=True))) for each in across.rows]
            for here in ([dict(zip(up.names, row, strict=True)) for row in up.rows] if up else [{}])
        ],
        float,
    )
    if np.isnan(found).all():
        return None
    from evenly.plots.maps import Fluid

    return Fluid(_numbers(across), _numbers(up) if up else [""], found)


def _refined(axis: Axis) -> Axis:
    """Return an axis of real numbers with many more places between the ends; others as they are."""
    given = [row[0] for row in axis.rows]
    if len(axis.names) > 1 or not all(isinstance(value, float) for value in given):
        return axis
    from evenly.plots.maps import is_logarithmic

    low, high = min(given), max(given)
    spaced = np.geomspace if is_logarithmic(low, high) else np.linspace
    places = spaced(low, high, _FINE)
    return Axis(axis.names, tuple((float(f"{place:.12g}"),) for place in places))
