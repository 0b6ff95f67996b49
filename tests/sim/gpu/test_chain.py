"""The chain of the GPU, compiled for this machine: against the kernel, event by event, and against exact laws."""

import ctypes
import sys

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.sim import Scenario
from evenly.sim.gpu.device import launch
from evenly.sim.gpu.points import MAX_SAMPLED, POINT, SUMS, as_points
from evenly.sim.kernels.rng import BUFFER
from evenly.sim.simulation import Simulation
from evenly.theory import solve_exact
from tests.sim.gpu.host import LEVELS, address, compiled_chain, replicate

SYSTEMS = {
    "learning": Scenario(pools=30, load=5.5, alpha="0.9"),
    "learning from a high threshold": Scenario(pools=20, load=2.9, alpha="0.7", threshold=9, initial_tasks=5.5),
    "few pools": Scenario(pools=3, load=0.4, alpha="0.6"),
    "fixed": Scenario(pools=30, load=5.5, threshold=5),
    "fixed, too low": Scenario(pools=30, load=5.5, threshold=3),
    "fixed, too high": Scenario(pools=30, load=5.5, threshold=8),
    "jsq": Scenario(policy="jsq", pools=30, load=5.5),
    "random": Scenario(policy="random", pools=30, load=5.5),
    "power-of-2": Scenario(policy="power-of-d", pools=30, load=5.5),
    "power-of-4": Scenario(policy="power-of-d", pools=30, load=5.5, sample_size=4),
}


@pytest.fixture(scope="module")
def chain() -> ctypes.CDLL:
    return compiled_chain()


def test_records_have_the_layout_of_the_structs(chain: ctypes.CDLL) -> None:
    sizes = np.zeros(2, np.int32)
    chain.sizes(address(sizes))
    assert sizes.tolist() == [POINT.itemsize, SUMS.itemsize]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_kernel_makes_the_same_decisions(chain: ctypes.CDLL, name: str) -> None:
    """Both get the same 32-bit uniforms: for each event one, and those of its choices."""
    scenario, steps = SYSTEMS[name], 10 * BUFFER
    rng = np.random.default_rng(5)
    events = rng.integers(0, 2**32, steps, dtype=np.uint32)
    choices = rng.integers(0, 2**32, (steps, MAX_SAMPLED), dtype=np.uint32)
    point = as_points([scenario], LEVELS)
    levels = np.zeros((steps, LEVELS), np.int32)
    totals, thresholds = np.zeros(steps, np.int32), np.zeros(steps, np.int32)
    sums = np.zeros(1, SUMS)
    chain.play(*map(address, (point, events, choices)), steps, *map(address, (levels, totals, thresholds, sums)))

    simulation = Simulation(scenario, np.random.SeedSequence(1), mean_holding=True)
    streams, state = simulation._system.streams, simulation.state
    drawn = scenario.sampled if scenario.policy == "power-of-d" else 1
    for step in range(steps):
        streams.events[int(state["position"])] = events[step] / 2**32
        state["choice_position"] = 0
        streams.choices[:drawn] = choices[step, :drawn] / 2**32
        simulation.advance(np.inf, max_events=1)
        found = simulation.at_least
        assert (levels[step, : found.size] == found).all() and not levels[step, found.size :].any(), step
        if scenario.policy == "threshold":
            assert thresholds[step] == state["threshold"], step
    counts = {
        "green": "green",
        "yellow": "yellow",
        "resync": "resync",
        "changes": "changes",
        "arrivals": "arrivals",
    }
    if scenario.policy == "threshold":
        assert {ours: int(sums[ours][0]) for ours in counts} == {
            ours: int(state[name]) for ours, name in counts.items()
        }
    tally = simulation.tally()
    assert sums["spread"][0] == pytest.approx(tally.spread, rel=1e-6)
    assert sums["imbalance"][0] * scenario.pools == pytest.approx(tally.gap, rel=1e-6)
    assert sums["time"][0] == pytest.approx(simulation.time, rel=1e-6)


@pytest.mark.parametrize("name", [name for name, each in SYSTEMS.items() if each.policy == "threshold"])
def test_the_window_makes_the_same_decisions(name: str) -> None:
    """With the same random numbers, counts are equal, and integrals up to single precision."""
    scenario = SYSTEMS[name]
    fast, fast_time = replicate(scenario, 7, 3, windowed=True)
    plain, plain_time = replicate(scenario, 7, 3, windowed=False)
    assert fast["plain"] < plain["plain"] == plain["events"]
    for count in ("events", "arrivals", "green", "yellow", "resync", "changes", "without_token", "dropped"):
        assert fast[count] == plain[count], count
    for integral in ("time", "tasks", "spread", "max_tasks", "threshold", "imbalance"):
        assert fast[integral] == pytest.approx(plain[integral], rel=2e-5), integral
    assert fast_time / fast_time.sum() == pytest.approx(plain_time / plain_time.sum(), abs=1e-5)


def test_averages_are_those_of_the_exact_law() -> None:
    """Means of 64 replications are normal; a deviation of 6.1 standard errors has the probability 1e-9."""
    scenario = Scenario(pools=4, load=1.5, alpha="0.7", horizon=1020, warmup=20)
    law = solve_exact(pools=4, load=1.5, alpha="0.7")
    runs = [replicate(scenario, 7, index, windowed=True)[0] for index in range(64)]
    exact = {
        "tasks": 4 * law.mean_tasks,
        "max_tasks": law.max_tasks,
        "spread": law.spread,
        "threshold": law.threshold or 0.0,
    }
    for name, expected in exact.items():
        means = np.array([run[name] / run["time"] for run in runs])
        error = means.std(ddof=1) / np.sqrt(means.size)
        assert abs(means.mean() - expected) < 6.1 * error, name
        assert error < 0.01 * expected


def test_without_cupy_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(InputError, match="needs an NVIDIA GPU and CuPy, which is not installed"):
        launch([SYSTEMS["jsq"]], [1], 1, imbalance=False)
