"""How this package compiles its kernels; the decorators keep the types that Numba itself drops."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from inspect import getsourcefile
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

_Function = TypeVar("_Function", bound=Callable[..., Any])

_UNCOUNTED: Any = {"_nrt": False}  # arrays keep no count of their references

_LOG = logging.getLogger(__name__)


@cache
def _stamp(source: Path) -> str:
    """Return a digest of a kernel's file and of all files in this folder.

    Numba's own stamp covers the kernel's file alone, not those of the functions that it calls.
    """
    sources = sorted({source, *Path(__file__).parent.glob("*.py")})
    return sha256(b"".join(each.read_bytes() for each in sources)).hexdigest()


def kernel(function: _Function) -> _Function:
    """Compile once and keep on disk, release the interpreter lock, divide by zero as IEEE 754 does.

    Kernels allocate nothing, so that they need not count references to arrays, which took up to nine tenths of the
    time. Numba refuses to compile one that does allocate.
    """
    compiled: Any = njit(nogil=True, error_model="numpy", **_UNCOUNTED)(function)
    with suppress(RuntimeError):  # there is no folder that we may write to
        compiled.enable_caching()
        compiled._cache._cache_file._source_stamp = _stamp(Path(getsourcefile(function) or __file__))
    return cast(_Function, compiled)


def inlined(function: _Function) -> _Function:
    """Paste into the kernels that call it: a call would count references of every array passed."""
    return cast(_Function, njit(inline="always", error_model="numpy", **_UNCOUNTED)(function))


class _Notice(event.Listener):
    """Logs, once per process, that kernels are being compiled. Numba does not report those it loads from disk."""

    def __init__(self) -> None:
        self._given = False

    def on_start(self, start: Any) -> None:  # noqa: ANN401
        """Log the first compilation of a function of this package."""
        if not self._given and start.data["dispatcher"].py_func.__module__.startswith("evenly."):
            self._given = True
            text = "Compiling the simulator, which takes up to a minute. Later runs use the compiled code."
            _LOG.info(text, extra={"stage": "compiling"})

    def on_end(self, end: Any) -> None:  # noqa: ANN401
        """Do nothing."""


event.register("numba:compile", _Notice())  # type: ignore[no-untyped-call]
