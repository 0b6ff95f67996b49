"""How this package compiles its kernels; the decorators keep the types that Numba itself drops."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _stamp() -> str:
    """A digest of all sources of `sim`: Numba's own stamp covers a kernel's file, not those of what it calls."""
    sources = sorted(Path(__file__).parents[1].rglob("*.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


_STAMP = _stamp()


def kernel(function: _Function) -> _Function:
    """Compile once, keep on disk, release the interpreter lock, divide by zero as IEEE says."""
    compiled: Any = njit(cache=True, nogil=True, error_model="numpy")(function)
    compiled._cache._cache_file._source_stamp = _STAMP
    return cast(_Function, compiled)


def inlined(function: _Function) -> _Function:
    """Paste into the kernels that call it: a call would count references of every array passed."""
    return cast(_Function, njit(inline="always", error_model="numpy")(function))
