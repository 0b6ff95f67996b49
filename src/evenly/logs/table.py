"""Which column of a table holds what, and in which unit. For CSV and Parquet alike.

A column says its unit in its name (`duration_ms`), or the caller names one for all (`unit`), else `start`, `end`
and `duration` are in seconds. One column with a unit and one without are ambiguous, and refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.logs.batch import Floats
from evenly.logs.collect import UNIX_TO
from evenly.logs.values import UNITS

ROLES = ("start", "duration", "end", "server", "state")


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column: its place, its name as the file has it, and its unit; an empty one is not given anywhere."""

    place: int
    name: str
    unit: str

    @property
    def per_second(self) -> float:
        """How many of its units make a second."""
        return UNITS[self.unit or "s"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The columns of a table. Two of start, duration and end are there."""

    start: Column | None
    duration: Column | None
    end: Column | None
    server: Column | None
    state: Column | None = None

    @property
    def times(self) -> tuple[Column, ...]:
        """The columns with numbers: two of start, duration and end."""
        first = [each for each in (self.start, self.duration, self.end) if each is not None]
        return tuple(first[:2])


def find_layout(
    names: Sequence[str], *, file: str, unit: str | None = None, columns: Mapping[str, str] | None = None
) -> Layout:
    """Return the layout of a table with these columns, or raise InputError with what to type instead."""
    if unit is not None and unit not in UNITS:
        raise InputError(f"The unit must be one of {', '.join(UNITS)}, not {shown(unit)}.")
    wanted = dict(columns or {})
    for role in wanted:
        if role not in ROLES[:4]:
            raise InputError(f"A column can be start, duration, end or server, not {shown(role)}.")
    found = {role: _find(role, wanted.get(role), names, unit, file) for role in ROLES}
    layout = Layout(**found)
    if len(layout.times) < 2:
        raise InputError(
            f"{file} must have a column start and a column duration or end (with a unit: start_ms), "
            f"not {shown(', '.join(names))}: rename them, or give --columns start=NAME."
        )
    return layout


def _find(role: str, wanted: str | None, names: Sequence[str], unit: str | None, file: str) -> Column | None:
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"{file} has no column {shown(wanted)}; its columns are {shown(', '.join(names))}.")
        return Column(place=names.index(wanted), name=wanted, unit=_suffix(wanted) or unit or "")
    plain = [name.strip().lower() for name in names]
    spellings = [role] if role in ("server", "state") else [role, *(f"{role}_{each}" for each in UNITS)]
    fitting = [place for place, name in enumerate(plain) if name in spellings]
    if len(fitting) > 1:
        raise InputError(
            f"{file} has two columns for {role}: {shown(', '.join(names[each] for each in fitting))}."
        )
    if not fitting:
        return None
    return Column(place=fitting[0], name=names[fitting[0]], unit=_suffix(plain[fitting[0]]) or unit or "")


def _suffix(name: str) -> str:
    """Return the unit at the end of a name; none if it has none."""
    _, _, last = name.strip().lower().rpartition("_")
    return last if last in UNITS and last != name else ""


def check_units(numeric: Sequence[Column], file: str) -> None:
    """Reject columns of numbers of which only one names its unit, unless that is the second."""
    named = [column for column in numeric if column.unit]
    silent = [column for column in numeric if not column.unit]
    if silent and any(column.unit != "s" for column in named):
        name, unit = silent[0].name, named[0].unit
        raise InputError(
            f"{file}: {named[0].name} is in {unit}, but {name} names no unit: call it {name}_{unit} or {name}_s, "
            f"or give --unit."
        )


def check_seconds(column: Column, values: Floats, file: str) -> None:
    """Reject numbers of which most are too large for seconds: 1767225600000 is a time in milliseconds."""
    large = values[values >= UNIX_TO]
    if column.unit or 2 * len(large) <= len(values):
        return
    likely = next((unit for unit, per in UNITS.items() if large[0] / per < UNIX_TO), "ns")
    raise InputError(
        f"{file}: {column.name} is {large[0]:.0f}, which is too large for seconds. If it is in {likely}, call the "
        f"column {column.name}_{likely}, or give --unit {likely}."
    )
