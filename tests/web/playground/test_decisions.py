"""The playground's policies make the decisions of `evenly.core`, event by event."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.playground.histories import CASES, SIZE, dispatcher_history, policy_history
from tests.web.playground.node import in_node

_SEEDS = range(1, 7)


@pytest.fixture(scope="module")
def replayed() -> dict[str, Any]:
    """What JavaScript decides, and what Python does, for all histories in one process."""
    policies = {(name, seed): policy_history(case, seed) for name, case in CASES.items() for seed in _SEEDS}
    dispatchers = {seed: dispatcher_history(seed) for seed in _SEEDS}
    found = in_node(
        "replay.mjs",
        {
            "size": SIZE,
            "policies": [{"spec": CASES[name], "events": events} for (name, _), (events, _) in policies.items()],
            "dispatchers": [events for events, _ in dispatchers.values()],
        },
    )
    return {
        "policies": dict(zip(policies, found["policies"], strict=True)),
        "dispatchers": dict(zip(dispatchers, found["dispatchers"], strict=True)),
        "expected": {key: decisions for key, (_, decisions) in policies.items()},
        "expected dispatchers": {seed: decisions for seed, (_, decisions) in dispatchers.items()},
    }


@pytest.mark.parametrize("name", CASES)
def test_every_policy_decides_as_in_python(name: str, replayed: dict[str, Any]) -> None:
    for seed in _SEEDS:
        expected, found = replayed["expected"][name, seed], replayed["policies"][name, seed]
        for index, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
            assert ours == theirs, f"seed {seed}, event {index}"


def test_reports_change_the_dispatcher_as_in_python(replayed: dict[str, Any]) -> None:
    for seed in _SEEDS:
        expected, found = replayed["expected dispatchers"][seed], replayed["dispatchers"][seed]
        for index, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
            assert ours == theirs, f"seed {seed}, event {index}"


def test_the_histories_reach_what_matters(replayed: dict[str, Any]) -> None:
    """Thresholds rise and fall, no token is held at times, and more pools are sampled than there are."""
    learned = [d["threshold"] for seed in _SEEDS for d in replayed["expected"]["threshold, learning", seed]]
    assert len(set(learned)) > 4
    states = [state for seed in _SEEDS for state in replayed["expected dispatchers"][seed]]
    assert any(not state["yellow"] for state in states)
    assert len({state["threshold"] for state in states}) >= 3
    fewest = min(len(state["members"]) for seed in _SEEDS for state in replayed["expected"]["seven choices", seed])
    assert fewest < 7
