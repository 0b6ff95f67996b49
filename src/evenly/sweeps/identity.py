"""What identifies a value, and with it a point: digests that do not depend on order, spelling or machine."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.own_policy import find_class
from evenly.policies import is_own, own_name
from evenly.sweeps.axes import defaults
from evenly.workload.arrivals import ArrivalProcess
from evenly.workload.service import ServiceLaw

Lanes = NDArray[np.uint64]  # two numbers per point: together 128 bits


def lanes_of_values(values: Mapping[str, Any]) -> Lanes:
    """Return the sum of the digests of some options: it does not depend on their order."""
    return sum((column_lanes(name, [value])[0] for name, value in values.items()), np.zeros(2, np.uint64))


def column_lanes(name: str, values: Sequence[Any]) -> Lanes:
    """Return the digest of each value of an option, or 0 for its default: an option added later does not count.

    Digests are added up to identities, which is quick for a million points.
    """
    usual, nothing = defaults().get(name), bytes(16)
    digests = [
        nothing
        if value is None or value == usual
        else hashlib.blake2b(f"{name}={_text(name, value)}".encode(), digest_size=16).digest()
        for value in values
    ]
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64).reshape(-1, 2)


def _text(name: str, value: Any) -> str:  # noqa: ANN401  (whatever a scenario takes)
    shown = own_name(value) if name == "policy" and is_own(value) else repr(value)
    return f"{shown} {content_digest(name, value)}"


def content_digest(name: str, value: Any) -> str:  # noqa: ANN401
    """Return a digest of what a value names but does not show: the source of a policy, the numbers of a file."""
    if name == "policy" and is_own(value):
        content = _source(value)
    elif isinstance(value, ServiceLaw | ArrivalProcess):
        content = repr(value.values if isinstance(value, ServiceLaw) else value.times)
    else:
        return ""
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def _source(policy: str | type[Any]) -> str:
    """Return the source of a policy's module: a changed policy makes new points. Empty if it is unknown."""
    kind = find_class(policy)
    module = sys.modules.get(kind.__module__)
    try:
        return inspect.getsource(kind if module is None or kind.__module__ == "__main__" else module)
    except (OSError, TypeError):  # typed in a shell
        return ""


def hex_keys(lanes: Lanes) -> list[str]:
    """Return identities as they are written: 32 hexadecimal digits."""
    return [f"{first:016x}{second:016x}" for first, second in lanes.tolist()]


def lanes_of_keys(keys: list[str]) -> Lanes:
    """Return identities from their hexadecimal digits."""
    return np.frombuffer(bytes.fromhex("".join(keys)), ">u8").astype(np.uint64).reshape(-1, 2)


def is_among(wanted: Lanes, known: Lanes) -> NDArray[np.bool_]:
    """Return for each identity whether it is among the known ones, which are sorted by their first number."""
    if not len(known):
        return np.zeros(len(wanted), bool)
    place = np.minimum(np.searchsorted(known[:, 0], wanted[:, 0]), len(known) - 1)
    same: NDArray[np.bool_] = (known[place] == wanted).all(axis=1)
    return same
