"""How this package compiles its kernels; the decorator keeps the types that Numba itself drops."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile once, keep on disk, release the interpreter lock, divide by zero as IEEE says."""
    return cast(_Function, njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: _Function) -> _Function:
    """Paste into the kernels that call it: a call would count references of every array passed."""
    return cast(_Function, njit(inline="always", error_model="numpy")(function))
