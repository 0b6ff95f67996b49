"""How laws and processes are written: a name, then parameters, as in pareto:shape=1.5,ratio=1000.

One spelling for the command line, scenario files, Python and saved results.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from evenly.errors import InputError
from evenly.inputs import plain_number, shown

_MAX_TEXT = 5000  # characters of a law, file names included

Numbers = tuple[float, ...]


def split_name(what: str, text: object) -> tuple[str, str]:
    """Return the name of a law or process, and what follows its colon."""
    if not isinstance(text, str) or len(text) > _MAX_TEXT:
        raise InputError(f"{what} must be a text such as {_AS_IN[what]}, not {shown(text)}.")
    name, _, rest = text.partition(":")
    return name, rest


_AS_IN = {"service": "lognormal:cv=4", "arrivals": "renewal:cv=2"}


def unknown_name(what: str, text: object, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not among those known."""
    return InputError(f"{what} must be one of {', '.join(known)}, not {shown(text)}.")


def read_parameters(what: str, example: str, text: str, keys: Iterable[str]) -> dict[str, Numbers]:
    """Return the parameters of a text such as "shape=1.5,ratio=1000", each as numbers that slashes separate."""
    name, known = example.partition(":")[0], tuple(keys)
    found: dict[str, Numbers] = {}
    for part in text.split(",") if text else ():
        key, _, written = part.partition("=")
        if not known:
            raise InputError(f"{what}: {name} takes no parameters, not {shown(part)}.")
        if key not in known:
            raise InputError(f"{what}: {name} takes {' and '.join(known)}, as in {example}, not {shown(part)}.")
        if key in found:
            raise InputError(f"{what}: give {key} of {name} once.")
        found[key] = tuple(_number(what, example, key, piece) for piece in written.split("/"))
    return found


def written(name: str, parameters: Mapping[str, Numbers]) -> str:
    """Return the text that `read_parameters` reads back."""
    parts = [f"{key}={'/'.join(f'{number:.12g}' for number in value)}" for key, value in parameters.items()]
    return f"{name}:{','.join(parts)}" if parts else name


def single(what: str, name: str, key: str, parameters: Mapping[str, Numbers]) -> float:
    """Return a parameter that is a single number."""
    value = parameters[key]
    if len(value) != 1:
        raise InputError(f"{what}: {key} of {name} must be a single number, not {len(value)}.")
    return value[0]


def split_file(what: str, name: str, text: str) -> tuple[Path, str]:
    """Return the path and the column of a text such as "sessions.csv,column=duration"; no column is ""."""
    path, _, column = text.partition(",column=")
    if not path:
        raise InputError(f"{what}: {name} needs a file, as in {name}:FILE or {name}:FILE,column=NAME.")
    return Path(path), column


def _number(what: str, example: str, key: str, text: str) -> float:
    number = plain_number(text)
    if math.isnan(number):
        raise InputError(f"{what}: {key} must be a number, as in {example}, not {shown(text)}.")
    return number
