"""The integral of the imbalance while the load swings, against a plain one that knows no levels' sums."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.sim.kernels.ledger import RULES, STATE, Record
from evenly.sim.kernels.wave import swing
from evenly.workload.demand import Phase
from tests.tiers import rest_in_full

IntArray = NDArray[np.int64]
PERIOD, START = 0.3, 0.1
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


def counts(tasks: IntArray, most: float) -> IntArray:
    levels = max(int(tasks.max()), math.ceil(most)) + 9
    return np.array([(tasks >= level).sum() for level in range(levels)], np.int64)


def plain_integral(phase: Phase, at_least: IntArray, begin: float, end: float) -> float:
    """Sum over all levels at every instant, by Gauss's rule between the instants at which one is met."""
    pools, levels = at_least[0], np.arange(at_least.size)
    met = np.concatenate([levels, levels[:-1] + at_least[1:] / pools, [phase.load - phase.amplitude]])
    sines = (met - phase.load) / phase.amplitude
    angles = np.arcsin(sines[abs(sines) <= 1])
    turns = np.arange(math.floor((begin - START) / PERIOD) - 1, math.ceil((end - START) / PERIOD) + 1)
    angles = np.concatenate([angles, math.pi - angles, [math.pi / 2]])
    cuts = START + PERIOD * (angles[:, np.newaxis] / (2 * math.pi) + turns).ravel()
    cuts = np.unique(np.concatenate([[begin, end], cuts[(begin < cuts) & (cuts < end)]]))
    graded = 0.5 ** np.arange(30.0, 0.0, -1.0)
    parts = np.concatenate([[0.0], graded, 1.0 - graded[-2::-1], [1.0]])  # finer near a cut
    area = []
    for first, last in pairwise(cuts.tolist()):
        edges = first + (last - first) * parts
        half = np.diff(edges)[:, np.newaxis] / 2
        times = (edges[:-1, np.newaxis] + half * (1 + NODES)).ravel()
        loads = phase.load + phase.amplitude * np.sin(2 * np.pi * (times - START) / PERIOD)
        balanced = np.clip(loads[:, np.newaxis] + 1 - levels, 0, 1)
        area.append(float(np.linalg.norm(at_least - pools * balanced, axis=1) @ (half * WEIGHTS).ravel()))
    return math.fsum(area)


def begun(phase: Phase, at_least: IntArray, begin: float) -> tuple[Record, Record, NDArray[np.float64]]:
    """Return the kernel's records at a time."""
    rules, state = np.zeros(1, RULES)[0], np.zeros(1, STATE)[0]
    rules["pools"], rules["load"], rules["amplitude"] = at_least[0], phase.load, phase.amplitude
    rules["period"], rules["start"] = phase.period, phase.start
    rules["frequency"] = 2 * math.pi / phase.period
    state["since"], state["load"] = begin, phase.load_at(begin)
    full = full_at(phase, at_least, begin)
    state["gap"] = np.square(at_least - full).sum()
    return rules, state, full


def full_at(phase: Phase, at_least: IntArray, time: float) -> NDArray[np.float64]:
    return np.where(np.arange(at_least.size) <= math.floor(phase.load_at(time)), float(at_least[0]), 0.0)


def assert_integrated(phase: Phase, at_least: IntArray, begin: float, end: float) -> None:
    rules, state, full = begun(phase, at_least, begin)
    area = swing(rules, state, at_least, full, end, phase.load_at(end))
    assert area == pytest.approx(plain_integral(phase, at_least, begin, end), rel=1e-9, abs=1e-14)
    assert state["load"] == phase.load_at(end)
    assert full.tolist() == full_at(phase, at_least, end).tolist()
    assert state["gap"] == np.square(at_least - full).sum()


@pytest.mark.parametrize("periods", rest_in_full([1e-5, 0.7, 0.01, 3.3], 2))
def test_the_integral_is_the_plain_one(periods: float) -> None:
    rng = np.random.default_rng(5)
    for pools in (1, 2, 5, 20, 1000):
        for load, swings in ((0.3, 1.0), (2.5, 0.8), (3.0, 0.01), (6.0, 1.0), (40.0, 0.5)):
            phase = Phase(START, load, load * swings, PERIOD)
            even = np.full(pools, int(load)) + (np.arange(pools) < rng.integers(0, pools + 1))
            for tasks in (rng.poisson(load, pools), even):
                begin = START + float(rng.random()) * 5 * PERIOD
                assert_integrated(phase, counts(tasks, 2 * load), begin, begin + periods * PERIOD)


@pytest.mark.parametrize("angle", [-0.5, 0.5, 1.0])  # of pi: at the trough, the peak, the middle
def test_stretches_at_the_peak_and_the_trough_are_integrated(angle: float) -> None:
    phase = Phase(START, 2.5, 1.5, PERIOD)  # from 1 to 4: both are whole
    at_least = counts(np.array([1, 2, 3, 3, 5]), 4.0)
    for periods in (1e-9, 1e-7, 1e-4, 0.003, 0.2):
        for part in (0.0, 0.3, 1.0):
            begin = START + PERIOD * (3 + angle / 2 - part * periods)
            assert_integrated(phase, at_least, begin, begin + periods * PERIOD)


def test_pieces_add_up_to_the_whole() -> None:
    phase = Phase(START, 5.0, 5.0, PERIOD)
    at_least = counts(np.array([3, 4, 5, 5, 6, 9]), 10.0)
    rules, state, full = begun(phase, at_least, START)
    times = START + 7 * PERIOD * np.sort(np.random.default_rng(3).random(3000))
    area = []
    for time in [*times.tolist(), START + 7 * PERIOD]:
        area.append(swing(rules, state, at_least, full, time, phase.load_at(time)))
        state["since"] = time
    assert math.fsum(area) == pytest.approx(7 * plain_integral(phase, at_least, START, START + PERIOD), rel=1e-9)
