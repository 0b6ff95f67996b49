"""Run a command as on a plain processor: no instructions beyond x86-64-v2, the least that NumPy runs on.

    python -m tools.plain_processor python -m pytest tests/sim

Numba, NumPy, OpenBLAS and the C library choose code by processor, and round differently. A test that pins the bits
of a sum passes on one machine and fails on the next: under this command it fails on every machine.
"""

from __future__ import annotations

import os
import sys

import numpy as np


def environment() -> dict[str, str]:
    """Return the variables that switch the choices off.

    Prescott is a kernel of OpenBLAS without AVX and FMA. Today's processors have kernels of their own, which round
    a matrix product differently, so it finds tests that pin its bits.
    """
    present = np.show_config("dicts")["SIMD Extensions"].get("found", [])
    return {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": " ".join(present),
        "OPENBLAS_CORETYPE": "Prescott",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4,-AVX512F",
    }


if __name__ == "__main__":
    os.execvpe(sys.argv[1], sys.argv[1:], {**os.environ, **environment()})
