"""The small parts of the balancer on their own: slow-start caps, the latency histogram, a pool's repr."""

from __future__ import annotations

import math

import pytest

from evenly.live.addresses import Address
from evenly.live.balancer.latency import BOUNDS, Latency
from evenly.live.balancer.lifecycle import Event
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.slow_start import Ramp

RAMP = Ramp(begun=100.0, first=3, seconds=10.0)


@pytest.mark.parametrize(("now", "cap"), [(100.0, 4.0), (102.5, 6.0), (105.0, 8.0), (110.0, 12.0)])
def test_a_cap_grows_from_the_first_sessions_and_one_by_a_share_of_the_mean(now: float, cap: float) -> None:
    assert RAMP.cap(now, 8.0) == cap


def test_slow_start_is_over_after_its_seconds() -> None:
    assert [RAMP.over(now) for now in (100.0, 109.9, 110.0, 111.0)] == [False, False, True, True]


def test_the_bounds_of_the_histogram() -> None:
    """Dashboards rely on them."""
    steps = [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0]
    assert pytest.approx(steps) == BOUNDS


def test_a_histogram_starts_empty_and_counts_each_pick_once() -> None:
    latency = Latency()
    assert latency.cumulative() == [(bound, 0) for bound in (*BOUNDS, math.inf)]
    for seconds in (0.5, 0.75, 2.0):
        latency.observe(seconds)
    assert [count for _, count in latency.cumulative()[-4:]] == [0, 1, 2, 3]
    assert latency.total == 3.25


def test_a_pool_shows_its_address_sessions_and_state() -> None:
    pool = LivePool(Address("pool.example", 80), Address("192.0.2.1", 80))
    pool.apply(Event.ADD)
    assert repr(pool) == "LivePool(pool.example:80, 0 sessions, warming)"
