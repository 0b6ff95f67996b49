"""The pure helpers behind Figs. 3 to 6, and the demand of Fig. 6."""

from math import floor, log

import numpy as np
import pytest

from evenly.paper.claims import demand as claims_demand
from evenly.paper.figures import fig3, fig4, fig6
from evenly.paper.judge import mostly, noted, seldom

TIMES, VALUES = np.array([1.0, 2.0, 4.0]), np.array([1, 2, 1])


def test_time_at_each_threshold_from_its_changes() -> None:
    shares = fig6.time_at(TIMES, VALUES, 0, (0.0, 8.0))
    assert shares == pytest.approx({0: 1 / 8, 1: 5 / 8, 2: 2 / 8})


@pytest.mark.parametrize(
    ("span", "expected"),
    [((0.0, 0.5), {0: 1.0}), ((2.0, 4.0), {2: 1.0}), ((3.0, 5.0), {2: 0.5, 1: 0.5}), ((5.0, 6.0), {1: 1.0})],
)
def test_a_span_begins_with_the_last_change_before_it(
    span: tuple[float, float], expected: dict[int, float]
) -> None:
    assert fig6.time_at(TIMES, VALUES, 0, span) == pytest.approx(expected)


def test_first_time_at_a_threshold() -> None:
    assert claims_demand.first_time_at(TIMES, VALUES, 2, (1.5, 8.0)) == 0.5
    assert claims_demand.first_time_at(TIMES, VALUES, 1, (1.5, 8.0)) == 2.5
    assert claims_demand.first_time_at(TIMES, VALUES, 7, (1.5, 8.0)) == 6.5


def test_samples_of_a_ratio_have_its_mean_and_no_spread_where_it_is_constant() -> None:
    below = np.array([1.0, 2.0, 4.0])
    assert fig3.ratio_samples(3 * below, below) == pytest.approx(3.0)
    assert fig3.ratio_samples(np.array([2.0, 3.0, 9.0]), below).mean() == pytest.approx(2.0)


def test_scatter_is_deviation_over_speed() -> None:
    """From an empty system the tasks are Poisson: at log(11) there are 5 a pool, and they grow at speed 0.5."""
    assert fig4.scatter(500, 5.5, 0, log(11)) == pytest.approx(np.sqrt(5 / 500) / 0.5)


def test_the_demand_of_figure_6_does_what_the_text_says() -> None:
    demand = fig6.scenario().demand
    just = 1e-9
    for time, load in fig6.JUMPS.items():
        assert demand(time) == load
        assert time == 0 or abs(demand(time - just) - load) > 1
    for edge in (*fig6.SWIFT, *fig6.SLOW):
        assert demand(edge) == pytest.approx(demand(edge - just), abs=1e-6)
    swift = [demand(time) for time in np.linspace(*fig6.SWIFT, 500)]
    slow = [demand(time) for time in np.linspace(*fig6.SLOW, 500)]
    assert len({floor(load) for load in swift}) == 1 < len({floor(load) for load in slow})
    assert max(swift) - min(swift) < 1 < max(slow) - min(slow)
    assert max(*swift, *slow, *fig6.JUMPS.values()) <= fig6.LOAD_MAX


@pytest.mark.parametrize(("misses", "supports"), [(0, True), (1, True), (5, True), (6, False), (10, False)])
def test_a_share_of_runs_is_judged_by_the_binomial_law(misses: int, supports: bool) -> None:
    """Of ten runs that fail one time in a hundred, five do with probability 2.4e-8, six with 2.0e-10."""
    number = mostly("hits", [True] * (10 - misses) + [False] * misses, 0.99)
    assert number.supports == supports
    assert number.value == 1 - misses / 10
    assert number.error is not None and number.error > 0


@pytest.mark.parametrize(("count", "supports"), [(0, True), (1, True), (34, True), (35, False)])
def test_a_rate_is_judged_by_the_law_of_poisson(count: int, supports: bool) -> None:
    """With 10 expected, 34 or more have a probability of 2.2e-9, 35 or more of 6.4e-10."""
    number = seldom("events", [count, 0, 0, 0], 1000, 0.01)
    assert number.supports == supports
    assert number.value == count / 1000


def test_the_error_of_a_rate_is_exact_without_events_and_knows_of_clusters() -> None:
    none, even, cluster = (seldom("", counts, 100, 1.0).error for counts in ([0, 0], [8, 8], [16, 0]))
    assert none == pytest.approx(-np.log(0.025) / 200)  # the exact interval ends at -log(0.025) / 100
    assert even is not None and cluster is not None and even < cluster


def test_what_serves_a_note_decides_nothing() -> None:
    number = noted("", [1.0, 2.0, 3.0])
    assert number.supports and number.expected is None
    assert number.value == 2.0
    assert number.error == pytest.approx(4.302653 / np.sqrt(3))
