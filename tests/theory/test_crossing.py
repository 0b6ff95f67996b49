"""First crossings of functions whose zeros are known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.theory.fluid.crossing import first_crossing

Floats = NDArray[np.float64]
GRID = np.linspace(0.0, 4.0, 41)


def test_the_first_of_several_zeros_is_found() -> None:
    assert first_crossing(lambda t: np.cos(3 * t), GRID) == pytest.approx(np.pi / 6, abs=1e-12)


def test_a_dip_between_grid_points_is_found() -> None:
    def dip(t: Floats) -> Floats:
        return (t - 1.53) ** 2 - 0.01**2

    assert np.all(dip(GRID) > 0)
    assert first_crossing(dip, GRID) == pytest.approx(1.52, abs=1e-12)


def test_a_dip_that_stays_above_zero_is_not_a_crossing() -> None:
    assert first_crossing(lambda t: (t - 1.53) ** 2 + 1e-6, GRID) is None


def test_an_event_that_has_just_happened_does_not_fire_again() -> None:
    assert first_crossing(lambda t: t**2, GRID) is None
    assert first_crossing(lambda t: t * (2.0 - t), GRID) == pytest.approx(2.0, abs=1e-12)


def test_a_function_below_zero_must_rise_first() -> None:
    assert first_crossing(lambda t: -1 - t, GRID) is None
    assert first_crossing(lambda t: -np.cos(3 * t), GRID) == pytest.approx(np.pi / 2, abs=1e-12)
