"""The paper, reproduced: experiments, figures that take parameters, claims with a verdict each, and a report.

`evenly.paper.figures` loads when first used, so that importing this package is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenly.paper import figures

__all__ = ["figures"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
