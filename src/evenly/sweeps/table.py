"""Rows as Parquet files: which columns they have, how they are written and read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.errors import InputError
from evenly.files import path_text
from evenly.sweeps import values
from evenly.sweeps.axes import RUN, float_options, whole_options, written_form
from evenly.sweeps.identity import hex_keys
from evenly.sweeps.point import Plan, Row

if TYPE_CHECKING:
    import polars as pl

SUFFIX = ".parquet"
ALWAYS = ("policy", "pools", "load", "horizon", "warmup", *RUN)  # columns of options, given or not
KEY = "point"
RECORDED = "recorded"  # the names of the values that a row has: some of them may be null


def polars() -> Any:  # noqa: ANN401  (a module)
    """Return the library that reads and writes Parquet."""
    try:
        import polars as library  # takes time to load
    except ModuleNotFoundError as error:
        if error.name != "polars":
            raise
        raise InputError("A sweep needs polars: run pip install '.[sweep]' in a checkout of evenly.") from None
    return library


def option_columns(plan: Plan) -> list[str]:
    """Return the options that are columns: those with a value other than None in some point, and a few always."""
    given = {name for block in plan.grid.blocks for name, value in block.fixed.items() if value is not None}
    given |= {name for block in plan.grid.blocks for group in block.groups for name in group.names}
    options = [name for group in plan.grid.groups for name in group.names]
    return [name for name in options if name in given or name in ALWAYS]


def make_frame(plan: Plan, rows: Sequence[Row]) -> pl.DataFrame:
    """Return rows as a frame: identity, parameters, seed, outcome, values with half-widths, version."""
    pl = polars()
    indices = np.array([row.number for row in rows], np.int64)
    given = [plan.grid.values(row.number) for row in rows]
    data: dict[str, Any] = {KEY: pl.Series(KEY, hex_keys(plan.identities(indices)), pl.String)}
    for name in option_columns(plan):
        if name != "replications":
            data[name] = _option_series(plan, name, [written_form(name, each.get(name)) for each in given])
    counts = [row.replications or each["replications"] for row, each in zip(rows, given, strict=True)]
    data["replications"] = pl.Series("replications", counts, pl.Int64)
    data["point_seed"] = pl.Series("point_seed", plan.seeds(indices), pl.Int64)
    data["events"] = pl.Series("events", [row.events for row in rows], pl.Int64)
    for place, column in enumerate(values.columns(plan.values)):
        kind = values.VALUES.get(column)
        dtype = pl.List(pl.Float64) if kind is not None and kind.is_list else pl.Float64
        data[column] = pl.Series(column, [row.values[place] for row in rows], dtype, strict=False)
    data[RECORDED] = pl.Series(RECORDED, [",".join(plan.values)] * len(rows), pl.String)
    data["error"] = pl.Series("error", [row.error for row in rows], pl.String)
    data["version"] = pl.Series("version", [plan.version] * len(rows), pl.String)
    return pl.DataFrame(data)  # type: ignore[no-any-return]


def _option_series(plan: Plan, name: str, column: list[Any]) -> pl.Series:
    """Return a column of an option. Its type depends on the plan, not on the rows: these may all be null."""
    pl = polars()
    kind = option_kind(plan, name)
    if kind is str:
        column = [value if value is None else str(value) for value in column]
    dtype = (
        pl.UInt64 if name == "seed" else {int: pl.Int64, float: pl.Float64, bool: pl.Boolean, str: pl.String}[kind]
    )
    return pl.Series(name, column, dtype)  # type: ignore[no-any-return]


def option_kind(plan: Plan, name: str) -> type[int | float | bool | str]:
    """Return the type of an option's column: text if one of its values is, else that of its numbers."""
    given = next(group for group in plan.grid.groups if name in group.names)
    place = given.names.index(name)
    kinds = {type(written_form(name, row[place])) for row in given.rows} - {type(None)}
    if name in whole_options() and kinds <= {int}:
        return int
    if kinds <= {int, float} and (kinds or name in float_options()):
        return float
    return bool if kinds == {bool} else str


def write_shard(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame to a file that is there as a whole or not at all, also if the machine loses power."""
    content = BytesIO()  # polars hides the reason if it cannot write to a file
    frame.write_parquet(content, compression="zstd", statistics=False)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_shard(path: Path, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the rows of a file, or raise InputError if it cannot be read."""
    with _reading(path):
        return polars().read_parquet(path, columns=columns, glob=False)  # type: ignore[no-any-return]


def shard_shape(path: Path) -> tuple[list[str], int]:
    """Return the columns of a file and the number of its rows, without reading them."""
    pl = polars()
    with _reading(path):
        lazy = pl.scan_parquet(path, glob=False)
        return lazy.collect_schema().names(), int(lazy.select(pl.len()).collect().item())


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (polars().exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise InputError(f"Cannot read {path_text(path)}: {reason}.") from None


def one_row_each(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return one row per point, with all values that any of its rows has. A point's rows agree but for rounding.

    An error counts only if the point has no row without one.
    """
    pl = polars()
    frames = list(frames)
    if not frames:
        return pl.DataFrame({KEY: pl.Series([], dtype=pl.String)})  # type: ignore[no-any-return]
    whole = pl.concat(frames, how="diagonal_relaxed")
    repeated = whole[KEY].is_duplicated()
    if not repeated.any():
        return whole  # type: ignore[no-any-return]
    several = whole.filter(repeated)
    well = several.filter(pl.col("error").is_null())
    several = pl.concat([several.filter(~pl.col(KEY).is_in(well[KEY].implode())), well])
    others = [name for name in whole.columns if name not in (KEY, RECORDED)]
    names = pl.col(RECORDED).str.split(",").explode().unique(maintain_order=True)
    joined = several.group_by(KEY, maintain_order=True).agg(
        *(pl.col(name).drop_nulls().last() for name in others), names.str.join(",")
    )
    return pl.concat([whole.filter(~repeated), joined.select(whole.columns)])  # type: ignore[no-any-return]
