"""A seed means the same decisions in the same order on every processor. Times and sums agree to rounding."""

import json

import pytest

from tests.sim.recorded_runs import FILE, SYSTEMS, run

ROUNDED = ("averages", "change_times")


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_seed_repeats_the_recorded_decisions(name: str) -> None:
    recorded, found = json.loads(FILE.read_text(encoding="utf-8"))[name], run(name)
    for field in ROUNDED:
        assert found.pop(field) == pytest.approx(recorded.pop(field), rel=1e-12, abs=1e-12)
    assert found == recorded
