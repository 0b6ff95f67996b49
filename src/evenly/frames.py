"""Features of all results: a one-line repr, an HTML table for notebooks, data frames, equality and a hash.

Standard library only; pandas and polars are imported when a frame is requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from html import escape
from importlib import import_module
from math import ceil, isnan, log10
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from evenly.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_SHOWN_ROWS = 10
_MOST_DIGITS = 15
UNKNOWN = "± ?"  # an interval that too few events leave open

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class FrozenDict(dict[_Key, _Value], Generic[_Key, _Value]):
    """A dictionary that cannot be changed; `dict(it)` is a copy that can."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("Results are read-only: change a copy, dict(...), instead.")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[FrozenDict[_Key, _Value]], tuple[dict[_Key, _Value]]]:
        return type(self), (dict(self),)


class ReadOnly:
    """A mixin of frozen dataclasses: arrays in fields become read-only and dictionaries immutable, copies too."""

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]  # the classes that inherit this are dataclasses
            object.__setattr__(self, each.name, _frozen(getattr(self, each.name)))

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Freeze what pickle and copy restore: their arrays can be written to."""
        self.__dict__.update(state)
        ReadOnly.__post_init__(self)


class Frames:
    """Data frames from the columns that `columns()` returns."""

    __slots__ = ()

    def columns(self) -> Mapping[str, Any]:
        """Return the main table: one sequence per column, all of one length."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """Return the main table as a pandas frame (needs the extra `frames`)."""
        frame: pd.DataFrame = _library("pandas").DataFrame(dict(self.columns()))
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return the main table as a polars frame (needs the extra `frames`)."""
        frame: pl.DataFrame = _library("polars").DataFrame(dict(self.columns()))
        return frame


class Tabular(ReadOnly, Frames):
    """The mixin of all results. A result defines what to show in `_headline` and `_rows`.

    Equality compares the fields by value, arrays included, and leaves out fields with `compare=False`, such as the
    wall-clock time. Give the dataclass `eq=False, repr=False`, so that it inherits these.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object that the command prints with --json."""
        raise NotImplementedError

    def _headline(self) -> str:
        """Return the numbers that matter, in one line."""
        raise NotImplementedError

    def _rows(self) -> Sequence[tuple[str, str]]:
        """Return the label and value of each line of the HTML table."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._headline()})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align: left">{escape(label)}</th><td>{escape(value)}</td></tr>'
            for label, value in self._rows()
        )
        return f"<table><caption>{escape(self._headline())}</caption><tbody>{rows}</tbody></table>"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _plain(self) == _plain(other)

    def __hash__(self) -> int:
        return hash(_plain(self))


@dataclass(frozen=True, eq=False, repr=False)
class Table(Frames):
    """Columns of one length, by name; `units` says what each holds."""

    data: Mapping[str, Any]
    units: Mapping[str, str] = field(default_factory=dict)

    def columns(self) -> Mapping[str, Any]:
        """Return the columns by name."""
        return self.data

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  (an array, or a list)
        return self.data[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.data)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.data.values()), ()))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists, ready for JSON; NaN becomes None."""
        return {name: [_without_nan(each) for each in _listed(column)] for name, column in self.data.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and _plain(self.data) == _plain(other.data)

    def __hash__(self) -> int:
        return hash(_plain(self.data))

    def __repr__(self) -> str:
        return f"Table({len(self)} rows: {', '.join(self.data)})"

    def _repr_html_(self) -> str:
        """Return the first rows; a frame shows more."""
        head = "".join(f'<th title="{escape(self.units.get(name, ""))}">{escape(name)}</th>' for name in self.data)
        rows = zip(*(_listed(column[:_SHOWN_ROWS]) for column in self.data.values()), strict=True)
        body = "".join(f"<tr>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row)}</tr>" for row in rows)
        more = f"<caption>first {_SHOWN_ROWS} of {len(self)} rows</caption>" if len(self) > _SHOWN_ROWS else ""
        return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def plus_minus(value: float, half_width: float | None, digits: int = 3) -> str:
    """Format a value and, if there is one, the half-width of its interval; NaN stands for an unknown one.

    A small half-width gets more digits: it must not look like zero.
    """
    if not half_width:  # none, or not a random number
        return f"{value:.{digits}f}"
    if isnan(half_width):
        return f"{value:.{digits}f} {UNKNOWN}"
    if half_width < 0.5 * 10.0**-digits:
        digits = min(ceil(-log10(half_width)), _MOST_DIGITS)
    return f"{value:.{digits}f} ± {half_width:.{digits}f}"


def percent(share: float) -> str:
    """Format a share in per cent, rounded to 0 or 100 only if it is exactly that."""
    if 0 < share < 0.0001:
        return "< 0.01 %"
    if 0.9999 < share < 1:
        return "> 99.99 %"
    return f"{100 * share:.2f} %"


def _library(name: str) -> Any:  # noqa: ANN401  (a module)
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # it is installed, but one of its dependencies is not
            raise
        raise InputError(
            f"Data frames need {name}: run pip install '.[frames]' in a checkout of evenly."
        ) from None


def _listed(column: Any) -> list[Any]:  # noqa: ANN401
    values: list[Any] = column.tolist() if hasattr(column, "tolist") else list(column)
    return values


def _without_nan(value: object) -> object:
    return None if isinstance(value, float) and isnan(value) else value


def _frozen(value: Any) -> Any:  # noqa: ANN401
    """Return a read-only view of an array, an immutable copy of a dictionary, and anything else unchanged."""
    if hasattr(value, "setflags") and value.ndim > 0:  # an array, whose owner may still write to it
        view = value.view()
        view.setflags(write=False)
        return view
    if isinstance(value, dict):
        return FrozenDict({key: _frozen(each) for key, each in value.items()})
    return value


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return the value as nested tuples of plain, hashable values, in which arrays compare by their entries."""
    if is_dataclass(value) and not isinstance(value, type):
        compared = (getattr(value, each.name) for each in fields(value) if each.compare)
        return type(value).__name__, tuple(_plain(each) for each in compared)
    if hasattr(value, "tolist"):  # an array or a number of NumPy
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return frozenset((key, _plain(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(_plain(each) for each in value)
    return "not a number" if isinstance(value, float) and isnan(value) else value  # equal to itself here
