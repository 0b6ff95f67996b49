"""The result of a sweep: its folder, read when it is looked at, and so also while the sweep runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.errors import InputError
from evenly.files import path_text
from evenly.frames import Tabular
from evenly.sweeps import table
from evenly.sweeps.folder import read_rows
from evenly.sweeps.manifest import read_manifest
from evenly.sweeps.progress import Status
from evenly.sweeps.values import CI, VALUES

if TYPE_CHECKING:
    import polars as pl
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ERRORS = 5  # shown


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SweepResult(Tabular):
    """The rows of a sweep, one per point that is done or failed.

    folder: where its files are. They are read anew at each call, so that a result shows what a running sweep has
        done so far.
    status: how the sweep went, if it ran here: points, reused, done, failed. None after `read`.
    seconds: wall-clock time of the sweep; 0 after `read`.
    """

    folder: Path
    status: Status | None = None
    seconds: float = field(default=0.0, compare=False)

    @classmethod
    def read(cls, folder: str | Path) -> SweepResult:
        """Return the result in a folder, also of a sweep that is still running or was killed."""
        path = Path(folder)
        if read_manifest(path) is None:
            raise InputError(f"{path_text(path)} is not the folder of a sweep: it has no sweep.json.")
        return cls(folder=path)

    @property
    def manifest(self) -> dict[str, Any]:
        """The options of the sweep with their values, the values recorded, and the version that wrote them."""
        manifest = read_manifest(self.folder)
        if manifest is None:
            raise InputError(f"{path_text(self.folder)} is not the folder of a sweep any more.")
        return manifest

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The options that vary, with their values."""
        return {name: given for name, given in self.manifest["options"].items() if len(given) > 1}

    @property
    def values(self) -> list[str]:
        """The names of the values recorded."""
        return list(self.manifest["values"])

    def rows(self) -> pl.DataFrame:
        """Return one row per point, in the order of the grid, as a polars frame."""
        manifest = self.manifest
        return _ordered(_of_grid(read_rows(self.folder), manifest), manifest)

    def columns(self) -> Mapping[str, Any]:
        """Return the rows by column, as lists and arrays: the options, the values with half-widths, the errors."""
        return {
            series.name: series.to_list() if series.dtype.is_nested() else series.to_numpy()
            for series in self.rows().get_columns()
        }

    def to_polars(self) -> pl.DataFrame:
        """Return one row per point as a polars frame."""
        return self.rows()

    @property
    def errors(self) -> list[str]:
        """The errors of the points that failed, in the order of the grid."""
        rows = self.rows()
        return list(rows["error"].drop_nulls()) if "error" in rows.columns else []

    @property
    def without_intervals(self) -> int:
        """The number of points none of whose values has an interval: short runs, or too few events."""
        rows = self.rows()
        widths = [value + CI for value in self.values if value + CI in rows.columns]
        well = rows.filter(rows["error"].is_null()) if "error" in rows.columns else rows
        return sum(all(width is None for width in row) for row in well.select(widths).iter_rows())

    def to_xarray(self) -> xr.Dataset:
        """Return the values that are single numbers as an xarray dataset (needs the extra `frames`).

        Points that are not done are NaN. Options that are zipped share a dimension, named like the first of them.
        Where a policy does not take a parameter, its value is repeated for all values of that parameter.
        """
        from evenly.sweeps.cube import to_xarray

        return to_xarray(self)

    def plot(
        self, *, value: str | None = None, x: str | None = None, y: str | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw one value as lines or as a heat map, on `ax` or on a new figure.

        value: its name (default: the first that was recorded).
        x, y: options that vary. With both, the plot is a map. With x alone, it has a line per value of the other
            option, with error bars. Without both, it is a map if two options have at least five numbers each.
        """
        from evenly.plots.maps import draw_panel
        from evenly.plots.style import axes_or_new
        from evenly.sweeps.picture import make_panels, read_picture

        picture = read_picture(self.manifest, value=value, x=x, y=y)
        if picture.panels > 1:
            raise InputError(
                f"plot draws one panel, and these are {picture.panels}: use plot_panels, which draws all of them."
            )
        return draw_panel(axes_or_new(ax), make_panels(self, picture)[0])

    def plot_panels(
        self,
        *,
        value: str | Sequence[str] | None = None,
        x: str | None = None,
        y: str | None = None,
        facet: str | None = None,
        figure: Figure | None = None,
    ) -> Figure:
        """Draw the picture of `evenly sweep --plot`: a panel for each value and each value of `facet`.

        value: one name or several (default: the first that was recorded).
        x, y: as in `plot`.
        facet: an option with a panel for each of its values (default: the third one that varies).
        """
        from evenly.plots.maps import draw_panels
        from evenly.plots.style import figure_or_new
        from evenly.sweeps.picture import make_panels, read_picture

        picture = read_picture(self.manifest, value=value, x=x, y=y, facet=facet)
        return draw_panels(
            figure_or_new(figure, *picture.size), make_panels(self, picture), rows=len(picture.names)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of `evenly sweep --json`."""
        manifest, rows = self.manifest, self.rows()
        status = self.status
        errors = self.errors
        return {
            "folder": str(self.folder),
            "points": manifest["points"],
            "rows": len(rows),
            "reused": None if status is None else status.reused,
            "done": None if status is None else status.done,
            "failed": len(errors),
            "errors": list(dict.fromkeys(errors))[:_ERRORS],
            "axes": self.axes,
            "values": manifest["values"],
            "until": manifest["options"].get("until", [None])[0],
            "events": int(rows["events"].sum()) if "events" in rows.columns else 0,
            "seconds": self.seconds,
            "device_seconds": None if status is None else status.device_seconds or None,
            "version": manifest["version"],
        }

    def _headline(self) -> str:
        manifest = self.manifest
        axes = " x ".join(f"{len(given)} {name}" for name, given in self.axes.items())
        return f"{axes or 'one point'}: {len(self.rows()):,} of {manifest['points']:,} points, in {self.folder}"

    def _rows(self) -> Sequence[tuple[str, str]]:
        manifest, rows = self.manifest, self.rows()
        failed = len(self.errors)
        return [
            ("points", f"{manifest['points']:,}"),
            ("done", f"{len(rows) - failed:,}"),
            ("failed", f"{failed:,}"),
            *((name, _short(given)) for name, given in self.axes.items()),
            ("values", ", ".join(manifest["values"])),
            ("folder", str(self.folder)),
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SweepResult) and self.rows().equals(other.rows())

    def __hash__(self) -> int:
        return hash(str(self.folder))


def _short(given: Sequence[Any]) -> str:
    if len(given) <= 6:
        return ", ".join(map(str, given))
    return f"{given[0]}, {given[1]}, ..., {given[-1]} ({len(given)} values)"


def _of_grid(rows: pl.DataFrame, manifest: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows of the present grid: an earlier one may have had others."""
    pl = table.polars()
    kept = pl.lit(True)
    for name, given in manifest["options"].items():
        if name in _compared(rows, manifest):
            kept &= pl.col(name).is_null() | pl.col(name).is_in(_like(rows[name], given).implode())
    rows = rows.filter(kept)
    for group in manifest["zip"]:
        names = [name for name in group["names"] if name in _compared(rows, manifest)]
        places = [group["names"].index(name) for name in names]
        wanted = {tuple(row[place] for place in places) for row in group["rows"]}
        rows = rows.filter(
            pl.Series([_fits(row, wanted) for row in rows.select(names).iter_rows()], dtype=pl.Boolean)
        )
    return rows


def _compared(rows: pl.DataFrame, manifest: Mapping[str, Any]) -> set[str]:
    """Return the options that tell rows apart. With a goal, replications are how many it took."""
    return set(rows.columns) - ({"replications"} if "until" in manifest["options"] else set())


def _fits(row: Sequence[Any], wanted: set[tuple[Any, ...]]) -> bool:
    if None not in row:
        return tuple(row) in wanted
    return any(all(a is None or a == b for a, b in zip(row, each, strict=True)) for each in wanted)


def _like(column: pl.Series, given: Sequence[Any]) -> pl.Series:
    """Return the values as a series that can be compared with the column."""
    pl = table.polars()
    as_text = column.dtype == pl.String
    listed = [str(value) if as_text and value is not None else value for value in given]
    return pl.Series(listed, dtype=column.dtype, strict=False)  # type: ignore[no-any-return]


def _ordered(rows: pl.DataFrame, manifest: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows in the order of the grid: by the places of their values in the options' lists."""
    pl = table.polars()
    ranks = []
    for name, given in manifest["options"].items():
        if name in _compared(rows, manifest) and len(given) > 1:
            places = {value: place for place, value in enumerate(_like(rows[name], given).to_list())}
            ranks.append(pl.col(name).replace_strict(places, default=-1, return_dtype=pl.Int64).alias(f"_{name}"))
    if not ranks or not len(rows):
        return rows
    keyed = rows.with_columns(ranks)
    added = [name for name in keyed.columns if name not in rows.columns]
    return keyed.sort(added, maintain_order=True).select(rows.columns)


def interval_column(name: str) -> str | None:
    """Return the column with the half-widths of a value, if it has them."""
    return name + CI if VALUES[name].interval else None
