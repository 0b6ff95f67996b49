"""The chain of the GPU, compiled for this machine."""

import ctypes
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.sim import Scenario
from evenly.sim.gpu.device import Launch
from evenly.sim.gpu.points import SOURCE, SUMS, as_points
from tests.needs import needs

LEVELS = 64


@cache
def compiled_chain() -> ctypes.CDLL:
    """Compile chain.h with g++, once per process. Without g++ the test is skipped."""
    library = Path(mkdtemp(prefix="evenly-chain-")) / "chain.so"
    options = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    defined = [f"-DEVENLY_LEVELS={LEVELS}", "-DEVENLY_IMBALANCE", f"-I{SOURCE}"]
    source = Path(__file__).with_name("host.cpp")
    subprocess.run([needs("g++"), *options, *defined, "-o", library, source], check=True)
    return ctypes.CDLL(str(library))


def address(array: NDArray[Any]) -> ctypes.c_void_p:
    """Return what C++ takes for an array."""
    return array.ctypes.data_as(ctypes.c_void_p)


def replicate(scenario: Scenario, seed: int, number: int, *, windowed: bool) -> tuple[Any, NDArray[np.float64]]:
    """Return the sums of one replication, and its time at each threshold."""
    sums, times = np.zeros(1, SUMS), np.zeros(LEVELS)
    point = as_points([scenario], LEVELS)
    numbers = (ctypes.c_ulonglong(seed), ctypes.c_ulonglong(number), ctypes.c_int(windowed))
    compiled_chain().replicate(address(point), *numbers, address(sums), address(times))
    return sums[0], times


def launch_here(
    scenarios: Sequence[Scenario], seeds: Sequence[int], replications: int, *, imbalance: bool
) -> Launch:
    """Do what `evenly.sim.gpu.device.launch` does, one replication after the other."""
    assert imbalance in {True, False}  # the compiled chain always records it
    sums, times = np.zeros((len(scenarios), replications), SUMS), np.zeros((len(scenarios), LEVELS))
    for place, (scenario, seed) in enumerate(zip(scenarios, seeds, strict=True)):
        for number in range(replications):
            windowed = scenario.policy == "threshold"
            sums[place, number], spent = replicate(scenario, seed, number, windowed=windowed)
            times[place] += spent
    return Launch(sums, times, 0.0)
