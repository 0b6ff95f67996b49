"""The checks catch a protocol that lacks something, and blame nothing on the real one."""

import pytest

from tests.faults.broken import BROKEN
from tests.faults.network import run_schedule
from tests.faults.network.many import mode_of, run_seeds
from tests.faults.support import report

SEEDS = range(20_001, 20_201)  # each way to break it is caught within these 200 schedules


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_caught(name: str) -> None:
    outcomes = (run_schedule(seed, mode_of(seed), peers=BROKEN[name]) for seed in SEEDS)
    failure = next((outcome.failure for outcome in outcomes if outcome.failure), None)
    assert failure is not None, f"{name} passed {len(SEEDS)} schedules."
    assert "ViolationError" in failure or "InputError" in failure  # caught by a check: it did not crash


def test_the_real_protocol_passes_the_same_schedules() -> None:
    tally = run_seeds(SEEDS)
    assert not tally.failures, report(tally.failures)
