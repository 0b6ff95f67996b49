"""Compile the simulator's kernels and the tests, so that the first run and all test processes find them on disk.

python -m tools.warm            two processes; a second run compiles nothing
python -m tools.warm kernels    without the tests
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evenly import Scenario, couple_with_jsq, replay_log, simulate, simulate_sizes
from evenly.core import JoinShortestQueue
from evenly.sim.recorded import simulate_recorded

# One system per compiled loop, the slowest to compile first.
SYSTEMS: tuple[dict[str, Any], ...] = (
    {"pools": 4, "load": 2.0, "alpha": "0.7", "delay": 0.01},
    {"sizes": "2*1,2*3", "load": 2.0, "alpha": "0.7", "service": "deterministic"},
    {"pools": 4, "load": 2.0, "alpha": "0.7", "service": "deterministic"},
    {"pools": 4, "load": 2.0, "alpha": "0.7"},
    {"sizes": "2*1,2*3", "load": 2.0, "alpha": "0.7"},
    {"pools": 4, "schedule": "0:2~1/3", "policy": "jsq"},
    {"pools": 4, "load": 2.0, "policy": "round-robin"},
)


def compile_system(options: dict[str, Any]) -> None:
    """Simulate a few events."""
    simulate(Scenario(horizon=3.0, **options), points=3)


def compile_others() -> None:
    """Run policies in Python, couple systems, record a run, replay a log."""
    learning = Scenario(pools=4, load=2.0, alpha="0.7", horizon=3.0)
    for service in ("exponential", "deterministic"):
        simulate(Scenario(policy=JoinShortestQueue, pools=4, load=2.0, service=service, horizon=3.0), points=3)
    couple_with_jsq(pools=4, load=2.0, events=10)
    simulate_sizes(learning, pools=(4, 8))
    simulate_recorded(learning)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.csv"
        log.write_text("start,duration\n" + "".join(f"{start},5\n" for start in range(20)), encoding="utf-8")
        replay_log(log, servers=4, policies=["jsq", "threshold"], alpha="0.7", limit=3)


def compile_tests() -> None:
    """Collect the tests: pytest compiles them in its own way. The test run reports errors, not this."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def main() -> None:
    """Compile, and wait until all is on disk."""
    # As in tests/conftest.py: fonts are listed once for all, and not in the user's home.
    os.environ["MPLCONFIGDIR"] = str(Path(sys.prefix) / "home" / "matplotlib")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        tasks = [pool.submit(compile_system, options) for options in SYSTEMS]
        tasks.append(pool.submit(compile_others))
        if sys.argv[1:] != ["kernels"]:
            tasks.append(pool.submit(compile_tests))
        for task in tasks:
            task.result()


if __name__ == "__main__":
    main()
