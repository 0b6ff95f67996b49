"""Pictures of a sweep: which panels there are, and the numbers in each. Drawing is in `evenly.plots.maps`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.sweeps.cube import Axis, axes_of, dense
from evenly.sweeps.predictions import fluid_value
from evenly.sweeps.values import CI, VALUES, value_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from evenly.plots.maps import Fluid
    from evenly.sweeps.result import SweepResult

MAX_PANELS = 60
_FINE = 61  # places along an axis of a prediction
_AVERAGED = ("seed",)  # axes of a sweep that a picture averages over


def draw(
    result: SweepResult,
    *,
    value: str | Sequence[str] | None,
    x: str | None,
    y: str | None,
    facet: str | None,
    figure: Figure | None,
) -> Figure:
    """Draw heat maps, or lines if only one axis varies."""
    from evenly.plots import maps, style

    manifest = result.manifest
    names = check_picture(manifest, value=value, x=x, y=y, facet=facet)
    axes = axes_of(manifest)
    across, up, facets = _chosen(axes, x, y, facet)
    rows = result.rows()
    panels = []
    for name in names:
        numbers, widths = (
            _slices(dense(rows, axes, column), axes, across, up, facets) for column in (name, name + CI)
        )
        scale = maps.Scale.of(np.concatenate([part.ravel() for part in numbers]))
        for place, row in enumerate(facets.rows if facets else ((),)):
            here = dict(zip(facets.names if facets else (), row, strict=True))
            panels.append(
                maps.Panel(
                    title=", ".join([_words(name), *(f"{option} {given}" for option, given in here.items())]),
                    x=_numbers(across),
                    y=_numbers(up) if up else None,
                    values=numbers[place],
                    widths=widths[place] if VALUES[name].interval else None,
                    scale=scale,
                    fluid=_fluid(name, manifest, across, up, here),
                )
            )
    figure = style.figure_or_new(figure, *figure_size(manifest, value=value, x=x, y=y, facet=facet))
    maps.draw_maps(
        figure, panels, rows=len(names), x_label=_words(across.name), y_label=_words(up.name) if up else ""
    )
    return figure


def figure_size(
    manifest: Mapping[str, Any],
    *,
    value: str | Sequence[str] | None,
    x: str | None,
    y: str | None,
    facet: str | None,
) -> tuple[float, float]:
    """Return the width and height in inches that suit a picture."""
    from evenly.plots import maps

    names = check_picture(manifest, value=value, x=x, y=y, facet=facet)
    _, up, facets = _chosen(axes_of(manifest), x, y, facet)
    panels = len(names) * (len(facets.rows) if facets else 1)
    return maps.size(panels, len(names), lines=up is None)


def check_picture(
    manifest: Mapping[str, Any],
    *,
    value: str | Sequence[str] | None,
    x: str | None,
    y: str | None,
    facet: str | None,
) -> list[str]:
    """Return the values to draw, or raise InputError if there is no such picture of the sweep."""
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
    _, _, facets = _chosen(axes, x, y, facet)
    if (panels := len(names) * (len(facets.rows) if facets else 1)) > MAX_PANELS:
        raise InputError(f"A picture has at most {MAX_PANELS} panels, not {panels}.")
    return names


def _chosen(
    axes: list[Axis], x: str | None, y: str | None, facet: str | None
) -> tuple[Axis, Axis | None, Axis | None]:
    """Return the axes for x, y and the facets: as asked for, else those that are left, in their order."""
    asked = [
        None if name is None else _find(axes, option, name)
        for option, name in (("x", x), ("y", y), ("facet", facet))
    ]
    taken = [axis for axis in asked if axis is not None]
    names = {frozenset(axis.names) for axis in taken}
    if len(names) < len(taken):
        raise InputError("x, y and facet must be different options.")
    left = [axis for axis in axes if frozenset(axis.names) not in names and axis.name not in _AVERAGED]
    left.sort(key=lambda axis: axis.name == "policy")  # names make poor axes
    across = asked[0] or (left.pop(0) if left else axes[0])
    up = asked[1] or (left.pop(0) if left else None)
    facets = asked[2] or (left.pop(0) if left else None)
    if left:
        extra = " and ".join(axis.name for axis in left)
        raise InputError(f"A picture has at most three axes, x, y and facet: give {extra} one value only.")
    return across, up, facets


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
    cube: NDArray[np.float64], axes: list[Axis], across: Axis, up: Axis | None, facets: Axis | None
) -> list[NDArray[np.float64]]:
    """Return one array per facet, with rows for y and columns for x, averaged over all other axes."""
    order = [set(axis.names) for axis in axes]
    wanted = [axis for axis in (facets, up, across) if axis is not None]
    places = [order.index(set(axis.names)) for axis in wanted]
    rest = tuple(place for place in range(cube.ndim) if place not in places)
    moved = np.transpose(cube, (*rest, *places))
    with np.errstate(invalid="ignore"):
        flat = moved.reshape(-1, *(len(axis.rows) for axis in wanted)).mean(axis=0)
    return list(flat) if facets else [flat]


def _numbers(axis: Axis) -> Sequence[Any]:
    return [row[0] for row in axis.rows]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _fluid(
    name: str, manifest: Mapping[str, Any], across: Axis, up: Axis | None, facet: Mapping[str, Any]
) -> Fluid | None:
    """Return the prediction of the fluid limit over x and y, on a fine grid; None if there is none."""
    common = {option: given[0] for option, given in manifest["options"].items()} | dict(facet)
    fine = [_refined(axis) for axis in (across, up) if axis is not None]
    rows = []
    for row in fine[1].rows if up else ((),):
        here = common | dict(zip(up.names if up else (), row, strict=True))
        rows.append(
            [fluid_value(name, here | dict(zip(across.names, each, strict=True))) for each in fine[0].rows]
        )
    found = np.array(rows, float)
    if np.isnan(found).all():
        return None
    from evenly.plots.maps import Fluid

    return Fluid(_numbers(fine[0]), _numbers(fine[1]) if up else None, found if up else found[0])


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
