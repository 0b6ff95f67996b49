"""Schedules of random faults: what must hold, holds."""

import pytest

from tests.faults.network import run_schedule
from tests.faults.network.many import run_seeds
from tests.faults.support import report


def survives(seeds: range) -> None:
    """Run the schedules of these seeds, half of them of each mode."""
    tally = run_seeds(seeds)
    assert tally.schedules == {"safety": len(seeds) // 2, "liveness": len(seeds) // 2}
    assert not tally.failures, report(tally.failures)


@pytest.mark.parametrize("first", range(1, 501, 50))
def test_the_protocol_survives(first: int) -> None:
    survives(range(first, first + 50))


@pytest.mark.full
@pytest.mark.parametrize("first", range(501, 2001, 250))
def test_the_protocol_survives_more_schedules(first: int) -> None:
    survives(range(first, first + 250))


HAPPENS = {  # at least this often in 100 schedules of each mode
    "loss": 2000, "duplication": 2000, "delay": 2000, "reordering": 2000, "old message": 500,
    "cut off": 100, "cut off, one way": 100, "partition": 50,
    "pool crash": 100, "pool restart": 50, "pool down": 50, "drain": 50, "refusal": 50, "operator's drain": 50,
    "elsewhere": 50,
    "front-end crash": 50, "front-end down": 100, "crash after write": 50, "dispatcher crash": 20,
    "store crash": 50, "store unreachable": 100, "failover": 100, "forgotten write": 500, "another answer": 20,
    "no-show": 200, "late client": 100, "reconnection": 100, "asked twice": 200, "retry": 1000,
    "repeated answer": 500, "expired lease": 500, "threshold change": 500, "pick on the way": 5000,
    "arrivals to settle": 100, "caught up": 5, "too many at once": 50,
    "pool dead for good": 10, "pool cut off for good": 10, "pool draining for good": 10,
    "pool deaf for good": 5,
}  # fmt: skip


@pytest.mark.full
def test_every_kind_of_fault_happens_and_the_checks_have_something_to_check() -> None:
    tally = run_seeds(range(10_000, 10_200))
    assert not tally.failures, report(tally.failures)
    assert {kind: tally.faults[kind] for kind, least in HAPPENS.items() if tally.faults[kind] < least} == {}
    assert tally.faults.keys() <= HAPPENS.keys()


def test_a_heartbeat_that_is_overtaken_is_answered() -> None:
    # Found by random exploration: a later message overtook the heartbeat, which then got no reply.
    assert run_schedule(1_044_075, "liveness").failure is None


def test_a_pool_that_comes_back_after_a_silence_keeps_its_capacity() -> None:
    # Found by random exploration: the capacity was forgotten with the silent pool, after it was set anew.
    assert run_schedule(2514, "safety").failure is None
