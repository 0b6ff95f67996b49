"""The learning rule alone, against the paper's formula in exact fractions."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import LearningRule


@pytest.mark.parametrize("alpha", [0.57, "0.57", Decimal("0.57")])
def test_the_boundary_counts_as_at_most_alpha(alpha: float | str | Decimal) -> None:
    rule = LearningRule(alpha)
    assert rule.fall_at(100) == 57
    assert rule.step(pools=100, green=43, yellow=100) == -1
    assert rule.step(pools=100, green=42, yellow=100) == 0


@pytest.mark.parametrize("pools", [1, 7, 10, 100, 1000, 10**9])
def test_every_two_digit_alpha_is_read_as_written(pools: int) -> None:
    for cents in range(1, 100):
        assert LearningRule(cents / 100).fall_at(pools) == cents * pools // 100


@pytest.mark.parametrize(("yellow", "step"), [(0, 1), (1, 1), (2, 0)])
def test_rises_when_all_pools_but_one_are_above(yellow: int, step: int) -> None:
    assert LearningRule(0.5).step(pools=10, green=0, yellow=yellow) == step


def test_a_rise_and_a_fall_at_once_cancel() -> None:
    # Nine of ten pools have more than the threshold, which is both n - 1 and at most 0.9 n.
    assert LearningRule("0.9").step(pools=10, green=1, yellow=1) == 0
    assert LearningRule("0.89").step(pools=10, green=1, yellow=1) == 1


@settings(max_examples=300)
@given(st.data())
def test_step_follows_the_formula(data: st.DataObject) -> None:
    alpha = data.draw(st.decimals("0.001", "0.999", places=3))
    pools = data.draw(st.integers(1, 60))
    yellow = data.draw(st.integers(0, pools))
    green = data.draw(st.integers(0, yellow))
    rise = Fraction(pools - yellow, pools) >= 1 - Fraction(1, pools)
    fall = Fraction(pools - green, pools) <= Fraction(alpha)
    assert LearningRule(alpha).step(pools, green, yellow) == rise - fall


@given(st.integers(1, 10**6), st.floats(0.0001, 0.9999))
def test_threshold_zero_never_falls(pools: int, alpha: float) -> None:
    assert LearningRule(alpha).step(pools, green=0, yellow=pools) >= 0
