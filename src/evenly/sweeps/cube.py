"""The rows of a sweep as arrays with one dimension per axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.sweeps.values import CI, VALUES

if TYPE_CHECKING:
    import polars as pl
    import xarray as xr

    from evenly.sweeps.result import SweepResult

MAX_CELLS = 10**8


@dataclass(frozen=True)
class Axis:
    """A dimension: the options that vary along it, and their values at each place. The first one names it."""

    names: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def name(self) -> str:
        """The name of the dimension."""
        return self.names[0]


def axes_of(manifest: Mapping[str, Any]) -> list[Axis]:
    """Return the dimensions of a sweep."""
    zipped = [Axis(tuple(each["names"]), tuple(tuple(row) for row in each["rows"])) for each in manifest["zip"]]
    together = {name: axis for axis in zipped for name in axis.names}
    found: list[Axis] = []
    for name, given in manifest["options"].items():
        axis = together.get(name, Axis((name,), tuple((value,) for value in given)))
        if len(axis.rows) > 1 and axis not in found:
            found.append(axis)
    return found


def dense(rows: pl.DataFrame, axes: list[Axis], column: str) -> NDArray[np.float64]:
    """Return a column of numbers over all axes; NaN where a point is missing.

    Where a parameter does not apply to a policy, the value is repeated along the parameter's axis.
    """
    shape = tuple(len(axis.rows) for axis in axes)
    if math.prod(shape) > MAX_CELLS:
        raise InputError(f"The axes have {math.prod(shape)} combinations, more than {MAX_CELLS}.")
    cube = np.full(shape, np.nan)
    numbers = rows[column].cast(float).to_numpy() if column in rows.columns else np.full(len(rows), np.nan)
    places = [_places(rows, axis) for axis in axes]
    everywhere = np.array([[len(found) != 1 for found in place] for place in places], bool).reshape(len(axes), -1)
    simple = ~everywhere.any(axis=0)
    if axes:
        index = tuple(np.array([found[0] for found in place], np.int64)[simple] for place in places)
        cube[index] = numbers[simple]
    for row in np.flatnonzero(~simple).tolist() if axes else range(len(rows)):
        cube[np.ix_(*(place[row] for place in places))] = numbers[row]
    return cube


def _places(rows: pl.DataFrame, axis: Axis) -> list[list[int]]:
    """Return the places along an axis that each row stands for: one, or all if the parameter is missing."""
    names = [name for name in axis.names if name in rows.columns]
    keep = [axis.names.index(name) for name in names]
    wanted = [tuple(_same(row[place]) for place in keep) for row in axis.rows]
    exact: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(wanted):
        exact.setdefault(row, []).append(place)
    found: dict[tuple[Any, ...], list[int]] = {}
    for given in rows.select(names).iter_rows():
        key = tuple(map(_same, given))
        if key not in found:
            found[key] = exact.get(key) or [
                place
                for place, row in enumerate(wanted)
                if all(a is None or a == b for a, b in zip(key, row, strict=True))
            ]
    return [found[tuple(map(_same, given))] for given in rows.select(names).iter_rows()]


def _same(value: object) -> object:
    """Return numbers as floats: a column may have 1 where a list has 1.0, or a text of it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def to_xarray(result: SweepResult) -> xr.Dataset:
    """Return the numbers of a sweep as a dataset over its axes."""
    try:
        import xarray
    except ModuleNotFoundError as error:
        if error.name != "xarray":
            raise
        raise InputError("to_xarray needs xarray: run pip install '.[frames]' in a checkout of evenly.") from None
    manifest, rows = result.manifest, result.rows()
    axes = axes_of(manifest)
    dimensions = [axis.name for axis in axes]
    names = [name for name in manifest["values"] if not VALUES[name].is_list]
    wanted = [column for name in names for column in ((name, name + CI) if VALUES[name].interval else (name,))]
    coordinates = {
        name: (axis.name, [row[place] for row in axis.rows])
        for axis in axes
        for place, name in enumerate(axis.names)
    }
    return xarray.Dataset(
        {column: (dimensions, dense(rows, axes, column)) for column in wanted},
        coords=coordinates,
        attrs={"version": manifest["version"]},
    )
