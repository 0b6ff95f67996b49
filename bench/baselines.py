"""The baselines of the simulator: a hand-written C++ program, and a SimPy model.

The comparison is only fair if both simulate the same system, which `check_agreement` verifies.
"""

import json
import math
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TypedDict, cast

from scipy import stats

from bench import simpy_model
from bench.cpp import COMPILERS, compiled

SOURCE = Path(__file__).with_name("chain.cpp")
FALSE_ALARM = 1e-6
"""Probability that one comparison fails although both programs are right."""
ROUNDING = 1e-9
"""Difference that rounding alone may cause."""


class Messages(TypedDict):
    """Number of messages by kind, and of tasks."""

    green: int
    yellow: int
    resync: int
    tasks: int


class ChainResult(TypedDict):
    """The output of the C++ program. Times are shares of the horizon."""

    events: int
    seconds: float
    mean_tasks: float
    pools_with_exactly: list[float]
    max_tasks_time: list[float]
    threshold_time: dict[str, float]
    threshold_changes: int
    messages: Messages
    imbalance: float
    spread: float


class DisagreementError(Exception):
    """The baselines do not simulate the same system."""


@dataclass(frozen=True)
class Comparison:
    """Two estimates of one number, and the difference that randomness explains."""

    name: str
    chain: float
    simpy: float
    bound: float

    @property
    def agrees(self) -> bool:
        """Whether randomness explains the difference."""
        return abs(self.chain - self.simpy) <= self.bound + ROUNDING

    def __str__(self) -> str:
        return f"{self.name}: C++ {self.chain:.5f}, SimPy {self.simpy:.5f}, allowed difference {self.bound:.5f}"


def compile_chain(folder: Path) -> Path | None:
    """Compile the C++ program into the folder. Return None if there is no compiler."""
    return compiled(SOURCE, folder)


def run_chain(
    program: Path,
    pools: int,
    load: float,
    alpha: float,
    *,
    horizon: float,
    seed: int,
    mean_holding: bool = False,
) -> ChainResult:
    """Run the C++ program once; `mean_holding` replaces the holding times by their means."""
    fall_at = int(Fraction(str(alpha)) * pools)
    command = [str(program), str(pools), repr(load), str(fall_at), repr(horizon), str(seed)]
    if mean_holding:
        command.append("mean")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{program.name} exited with {done.returncode}: {done.stderr.strip()}")
    return cast(ChainResult, json.loads(done.stdout))


def check_agreement(
    program: Path,
    pools: int = 20,
    load: float = 3.2,
    alpha: float = 0.8,
    *,
    horizon: float = 100.0,
    chain_runs: int = 200,
    simpy_runs: int = 100,
) -> tuple[Comparison, ...]:
    """Compare both baselines on independent runs. Raise an error if randomness does not explain the difference.

    The default scenario is small, so that the threshold rises and falls all the time and a wrong rule shows.
    """
    chain = [run_chain(program, pools, load, alpha, horizon=horizon, seed=seed) for seed in range(chain_runs)]
    simpy = [simpy_model.run(pools, load, alpha, horizon, seed) for seed in range(simpy_runs)]
    settled = math.floor(load)
    comparisons = (
        _compare_mean_tasks(
            [run["mean_tasks"] for run in chain],
            [run["mean_tasks"] for run in simpy],
            _mean_tasks_variance(pools, load, horizon),
        ),
        _compare_shares(
            f"share of time at threshold {settled}",
            [run["threshold_time"].get(str(settled), 0.0) for run in chain],
            [run["threshold_time"].get(settled, 0.0) for run in simpy],
        ),
    )
    wrong = [str(comparison) for comparison in comparisons if not comparison.agrees]
    if wrong:
        raise DisagreementError("; ".join(wrong))
    return comparisons


def _mean_tasks_variance(pools: int, load: float, horizon: float) -> float:
    """Return the exact variance of the time average of tasks per pool in one run from the empty system.

    Under any policy, the total is an M/M/infinity queue: for s < t the covariance of its values at s and t
    is pools load (1 - e^-s) e^-(t - s). Integrate twice over the horizon.
    """
    doubled = horizon - 2.0 + (horizon + 2.0) * math.exp(-horizon)
    return 2.0 * load * doubled / (pools * horizon**2)


def _compare_mean_tasks(chain: Sequence[float], simpy: Sequence[float], variance: float) -> Comparison:
    """Compare means. The variance of a run is known, so the bound is a normal quantile."""
    deviation = math.sqrt(variance * (1 / len(chain) + 1 / len(simpy)))
    quantile = float(stats.norm.isf(FALSE_ALARM / 2))
    return Comparison("mean tasks", statistics.fmean(chain), statistics.fmean(simpy), quantile * deviation)


def _compare_shares(name: str, chain: Sequence[float], simpy: Sequence[float]) -> Comparison:
    """Compare shares by Student's test. If the programs agree, their variances are equal and can be pooled."""
    freedom = len(chain) + len(simpy) - 2
    squares = statistics.variance(chain) * (len(chain) - 1) + statistics.variance(simpy) * (len(simpy) - 1)
    deviation = math.sqrt(squares / freedom * (1 / len(chain) + 1 / len(simpy)))
    quantile = float(stats.t.isf(FALSE_ALARM / 2, freedom))
    return Comparison(name, statistics.fmean(chain), statistics.fmean(simpy), quantile * deviation)


def main() -> None:
    """Check the baselines against each other and print the comparisons."""
    with tempfile.TemporaryDirectory() as folder:
        program = compile_chain(Path(folder))
        if program is None:
            print(f"no compiler found ({', '.join(COMPILERS)}): nothing to compare")
            return
        for comparison in check_agreement(program):
            print(comparison)
        for comparison in check_agreement(program, 500, 10.5, 0.97, horizon=20.0, chain_runs=64, simpy_runs=8):
            print(comparison)


if __name__ == "__main__":
    main()
