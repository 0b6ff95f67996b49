"""Thresholds that can persist above the optimum: the equilibrium decides, and fluid systems agree."""

from math import floor

import numpy as np
import pytest

from evenly.errors import InputError
from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.fluid.predict import predict_fluid
from evenly.theory.persistence import can_settle_above, full_share_above, loads_settling_above
from evenly.theory.tuning import is_optimal
from tests.theory.fluid_support import random_start
from tests.tiers import rest_in_full


@pytest.mark.parametrize(
    ("alpha", "sharp", "sufficient"),
    rest_in_full([(0.93, 0.736, 3.85), (0.91, 0.961, 4.95), (0.97, 0.306, 1.65)], 1),
)
def test_few_loads_let_the_threshold_persist_above_the_optimum(
    alpha: float, sharp: float, sufficient: float
) -> None:
    intervals = loads_settling_above(alpha=alpha, load_max=10)
    assert [high for _, high in intervals] == list(range(1, 11))
    assert sum(high - low for low, high in intervals) == pytest.approx(sharp, abs=5e-4)
    loads = np.arange(0.0005, 10, 0.001)
    inside = [any(low <= load < high for low, high in intervals) for load in loads]
    assert [can_settle_above(load=load, alpha=alpha) for load in loads[::7]] == inside[::7]
    assert np.mean([not is_optimal(load=load, alpha=alpha) for load in loads]) * 10 == pytest.approx(sufficient)
    assert all(is_optimal(load=load, alpha=alpha) for load in loads[::7] if load < alpha)


def test_the_lowest_load_is_the_traffic_that_an_erlang_system_blocks_to_alpha() -> None:
    """The share at the threshold k is Erlang's B for k servers, by its recursion in the number of servers."""
    for (load, high), servers in zip(loads_settling_above(alpha="0.8", load_max=6), range(1, 7), strict=True):
        blocked, offered = 1.0, load / 0.2
        for k in range(1, servers + 1):
            blocked = offered * blocked / (k + offered * blocked)
        assert high == servers
        assert blocked == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize(("alpha", "load_max"), [(0.2, 3.5), (0.6, 2.95), (0.97, 2.96), (0.97, 2.97)])
def test_intervals_stop_at_the_largest_load_and_cover_every_load_for_a_small_alpha(
    alpha: float, load_max: float
) -> None:
    intervals = loads_settling_above(alpha=alpha, load_max=load_max)
    assert all(0 < low < high <= load_max for low, high in intervals)
    loads = np.random.default_rng(3).uniform(0.01, load_max, 200)
    for load in loads:
        assert any(low <= load < high for low, high in intervals) == can_settle_above(load=load, alpha=alpha)
    if alpha == 0.2:
        assert intervals[1:] == ((1.0, 2.0), (2.0, 3.0), (3.0, 3.5))


def test_the_share_lies_between_its_bounds_and_grows_with_the_load() -> None:
    rng = np.random.default_rng(11)
    for whole in (1, 2, 3, 7, 40, 900):
        loads = np.sort(rng.uniform(whole - 1 + 1e-9, whole, 40))
        shares = np.array([full_share_above(float(load)) for load in loads])
        missing = whole - loads
        assert np.all(np.diff(shares) > 0)
        assert np.all(shares >= 1 - missing - 1e-12)
        assert np.all(shares <= 1 / (1 + missing) + 1e-12)
        assert np.all(shares <= loads / whole + 1e-12)


@pytest.mark.parametrize("seed", rest_in_full(range(9), 3))
def test_every_start_converges_to_the_equilibrium_of_a_threshold_above_the_load(seed: int) -> None:
    rng = np.random.default_rng(seed)
    load = round(float(rng.uniform(0.1, 7)), 3)
    threshold = floor(load) + 1 + seed % 3
    path = predict_fluid(
        load=load, threshold=threshold, initial_occupancy=random_start(rng, load), horizon=60, points=2
    )
    expected = predict_equilibrium(load=load, threshold=threshold).occupancy
    found = path.occupancy[-1]
    assert np.allclose(found[: threshold + 1], expected[: threshold + 1], rtol=0, atol=1e-8)
    assert np.all(found[threshold + 1 :] < 1e-8)


def test_a_threshold_that_can_persist_persists_from_its_equilibrium_but_not_from_every_start() -> None:
    load, threshold = 2.9, 3
    equilibrium = predict_equilibrium(load=load, threshold=threshold).occupancy
    for alpha in (0.85, 0.9, 0.906):
        assert can_settle_above(load=load, alpha=alpha)
        path = predict_fluid(load=load, alpha=alpha, threshold=threshold, initial_occupancy=equilibrium)
        assert path.change_times.size == 0
    assert not can_settle_above(load=load, alpha=0.907)
    uneven = [1.0, 0.92, 0.92, 0.92, *[0.06] * 6]
    path = predict_fluid(load=load, alpha=0.85, threshold=threshold, initial_occupancy=uneven)
    assert path.change_thresholds.tolist() == [2]
    assert path.change_times[0] == pytest.approx(0.06, abs=1e-4)


@pytest.mark.parametrize("seed", rest_in_full(range(6), 3))
def test_a_threshold_that_cannot_persist_falls_from_every_start(seed: int) -> None:
    """Where the paper's condition leaves it open."""
    rng = np.random.default_rng(seed)
    load = floor(rng.integers(2, 8)) + round(float(rng.uniform(0.3, 0.85)), 3)
    alpha = round(full_share_above(load) + 0.02, 3)
    assert not is_optimal(load=load, alpha=alpha) and not can_settle_above(load=load, alpha=alpha)
    threshold = floor(load) + 1
    mixed = 0.3 * np.pad(random_start(rng, load), (0, 60))[:40]
    start = np.maximum.accumulate((mixed + 0.7 * (np.arange(40) <= threshold))[::-1])[::-1]
    path = predict_fluid(load=load, alpha=alpha, threshold=threshold, initial_occupancy=start, horizon=60)
    assert path.threshold[-1] == threshold - 1


def test_impossible_values_are_rejected() -> None:
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        loads_settling_above(alpha=1.0, load_max=5)
    with pytest.raises(InputError, match="load_max must be a positive number"):
        loads_settling_above(alpha=0.9, load_max=0.0)
