"""Compiles the C++ programs of the benchmarks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

COMPILERS = ("g++", "c++", "clang++")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-Wall", "-Wextra")


def compiled(source: Path, folder: Path) -> Path | None:
    """Compile a program into the folder and return its path. Return None if there is no compiler."""
    compiler = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        return None
    program = folder / source.stem
    done = subprocess.run(
        [compiler, *FLAGS, "-o", str(program), str(source)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{compiler} could not compile {source.name}:\n{done.stderr}")
    return program
