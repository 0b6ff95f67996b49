"""Front doors: packages that load each public name when it is first used, so that importing them is quick.

The types of the names are in the package's `__init__.pyi`, since type checkers do not run code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def front_door(
    package: str, homes: Mapping[str, str], rooms: tuple[str, ...] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return a package's `__getattr__`, `__dir__` and `__all__`.

    `homes` maps modules to the names that they define, separated by spaces; `rooms` are modules of the package
    that are reachable as attributes. Both are loaded at the first use.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        if name in rooms:
            return import_module(f"{package}.{name}")
        if name in home_of:
            return getattr(import_module(home_of[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted([*home_of, *rooms]), sorted(home_of)
