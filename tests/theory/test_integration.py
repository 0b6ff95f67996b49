"""The integrator on equations whose solutions are known."""

import numpy as np
import pytest
from numpy.typing import NDArray

from evenly.errors import UnsolvedError
from evenly.theory.fluid.integration import Equations, integrate

Floats = NDArray[np.float64]

# y_1' = -y_1, y_2' = -1000 (y_2 - y_1): stiff, because y_2 follows y_1 almost immediately.
STIFF = Equations(
    lambda _, y: np.array([-y[0], -1000.0 * (y[1] - y[0])]),
    lambda _, __: np.array([[0.0, 0.0], [-1.0, -1000.0], [1000.0, 0.0]]),
)
START = np.array([1.0, 0.0])


def exact(times: Floats) -> Floats:
    slow = np.exp(-times)
    return np.column_stack([slow, 1000 / 999 * (slow - np.exp(-1000 * times))])


def test_outputs_agree_with_the_exact_solution() -> None:
    outputs = np.linspace(0.0, 5.0, 41)
    rows, end, last = integrate(STIFF, 0.0, START, 5.0, outputs)
    assert end == 5.0
    assert rows == pytest.approx(exact(outputs), abs=1e-9)
    assert last == pytest.approx(exact(np.array([5.0]))[0], abs=1e-9)


def test_an_event_ends_the_integration_at_the_exact_time() -> None:
    outputs = np.linspace(0.0, 5.0, 41)
    rows, end, last = integrate(STIFF, 0.0, START, 5.0, outputs, lambda _, y: y[0] - 0.3)
    assert end == pytest.approx(np.log(1 / 0.3), abs=1e-9)
    assert last[0] == pytest.approx(0.3, abs=1e-9)
    assert rows.shape[0] == np.count_nonzero(outputs <= end)


@pytest.mark.parametrize("depth", [1e-4, 1e-8])
def test_a_dip_within_a_step_is_an_event(depth: float) -> None:
    """The value is below zero only for a time of 2 depth^(1/2), much less than the steps of a solution at rest."""
    rest = np.array([0.0, 0.0])
    found = integrate(STIFF, 0.0, rest, 9.0, np.empty(0), lambda t, _: (t - 4.321) ** 2 - depth)[1]
    assert found == pytest.approx(4.321 - depth**0.5, abs=1e-9)


def test_a_dip_that_stays_above_zero_is_not_an_event() -> None:
    rest = np.array([0.0, 0.0])
    assert integrate(STIFF, 0.0, rest, 9.0, np.empty(0), lambda t, _: (t - 4.321) ** 2 + 1e-9)[1] == 9.0


def test_a_flat_zero_is_found() -> None:
    """A zero of the ninth order, on which Newton's method creeps."""
    end = integrate(STIFF, 0.0, START, 3.0, np.empty(0), lambda t, _: (2.0 - t) ** 9)[1]
    assert end == pytest.approx(2.0, abs=1e-6)


def test_a_solution_without_events_ends_at_rest() -> None:
    outputs = np.array([1.0, 100.0, 1e5])
    rows, end, _ = integrate(STIFF, 0.0, START, 1e6, outputs)
    assert end == 1e6
    assert rows == pytest.approx(exact(outputs), abs=1e-9)


@pytest.mark.parametrize("start", [5000.0, 1e6])
def test_a_solution_can_end_at_the_next_float(start: float) -> None:
    """VODE rejects an end this close to the start."""
    end = float(np.nextafter(start, np.inf))
    rows, reached, last = integrate(STIFF, start, START, end, np.array([start]))
    assert reached == end
    assert rows.tolist() == [START.tolist()]
    assert last == pytest.approx(exact(np.array([end - start]))[0], abs=1e-9)


def test_a_solution_that_ends_too_early_is_reported_in_one_sentence() -> None:
    """y' = y^2 from y(0) = 1 has no solution beyond time 1."""
    blow_up = Equations(lambda _, y: y**2, lambda _, y: np.array([[0.0], 2 * y, [0.0]]))
    with pytest.raises(UnsolvedError, match=r"could not be solved up to time 2: reduce the horizon\."):
        integrate(blow_up, 0.0, np.array([1.0]), 2.0, np.array([2.0]))
