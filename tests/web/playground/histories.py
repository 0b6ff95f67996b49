"""Histories of joins, leaves, arrivals and departures with random choices, played on policies of `evenly.core`.

Each event carries the uniforms that its choices use. What `evenly.core` decides is recorded after every event: the
pool, the threshold, the tokens in the dispatcher's order, and the messages so far.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, TypeVar, cast

from evenly.core import Dispatcher, LearningRule, Policy, Report, ThresholdPolicy
from evenly.core.make import make_policy

T = TypeVar("T")

SIZE = 12  # pools are numbered from 0 to 11
EVENTS = 400
CASES: dict[str, dict[str, Any]] = {
    "threshold, fixed": {"policy": "threshold", "threshold": 3},
    "threshold, zero": {"policy": "threshold", "threshold": 0},
    "threshold, learning": {"policy": "threshold", "threshold": 0, "alpha": "0.7"},
    "threshold, at the boundary": {"policy": "threshold", "threshold": 1, "alpha": "0.5"},
    "jsq": {"policy": "jsq"},
    "two choices": {"policy": "power-of-d", "choices": 2},
    "seven choices": {"policy": "power-of-d", "choices": 7},
    "random": {"policy": "random"},
    "round-robin": {"policy": "round-robin"},
    "jiq": {"policy": "jiq"},
    "jbt": {"policy": "jbt", "threshold": 3},
}


class _Choices:
    """A uniform choice that records its uniforms."""

    def __init__(self, chance: random.Random) -> None:
        self.used: list[float] = []
        self._chance = chance

    def __call__(self, candidates: Sequence[T], /) -> T:
        self.used.append(self._chance.random())
        return candidates[int(self.used[-1] * len(candidates))]


def policy_history(case: dict[str, Any], seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Play a history on a policy. Return its events, and what was decided at each."""
    chance = random.Random(seed)
    policy = make_policy(
        case["policy"],
        threshold=case.get("threshold"),
        alpha=case.get("alpha"),
        sample_size=case.get("choices"),
    )
    events, decisions = [], []
    for index in range(EVENTS):
        event = _next_event(policy, chance, index)
        choices = _Choices(chance)
        event["pool"], before = _play(policy, event, choices), event["pool"]
        decisions.append({"pool": event["pool"], **_state(policy)})
        event["pool"] = before  # an arrival's pool is for the policy to decide
        events.append({**event, "uniforms": choices.used})
    return events, decisions


def _next_event(policy: Policy, chance: random.Random, index: int) -> dict[str, Any]:
    members = sorted(cast(Sequence[int], policy.pools))
    if index < 4:
        return {"kind": "join", "pool": index, "tasks": chance.randrange(6)}
    others = sorted(set(range(SIZE)) - set(members))
    kinds = ["arrive"] * 8
    busy = [pool for pool in members if policy.tasks(pool)]
    kinds += ["depart"] * (7 if busy else 0) + ["join"] * bool(others) + ["leave"] * (len(members) > 1)
    kinds += ["threshold"] * isinstance(policy, ThresholdPolicy)
    kind = chance.choice(kinds)
    event: dict[str, Any] = {"kind": kind, "pool": -1, "tasks": chance.randrange(8)}
    if kind in ("depart", "join", "leave"):
        event["pool"] = chance.choice({"depart": busy, "join": others, "leave": members}[kind])
    return event


def _play(policy: Policy, event: dict[str, Any], choices: _Choices) -> int:
    if event["kind"] == "arrive":
        return cast(int, policy.arrive(choices))
    if event["kind"] == "threshold":
        assert isinstance(policy, ThresholdPolicy)
        policy.dispatcher.restart(event["tasks"])  # as a visitor who drags the threshold
        policy._rethreshold()
    elif event["kind"] == "join":
        policy.join(event["pool"], event["tasks"])
    elif event["kind"] == "leave":
        policy.leave(event["pool"])
    else:
        policy.depart(event["pool"])
    return cast(int, event["pool"])


def _state(policy: Policy) -> dict[str, Any]:
    held: dict[str, Any] = {"members": list(policy.pools), "messages": list(astuple(policy.messages))}
    held["tasks"] = [policy.tasks(pool) for pool in policy.pools]
    if isinstance(policy, ThresholdPolicy):
        held["threshold"] = policy.threshold
        held["green"], held["yellow"] = list(policy.dispatcher.green), list(policy.dispatcher.yellow)
    return held


def dispatcher_history(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Play reports in any order on a dispatcher, while pools join and leave."""
    chance = random.Random(seed)
    dispatcher = Dispatcher(2, LearningRule("0.6"))
    events, decisions = [], []
    for index in range(EVENTS):
        members = sorted(cast(Sequence[int], dispatcher.pools))
        others = sorted(set(range(SIZE)) - set(members))
        kinds = ["join"] if index < 4 else ["arrive"] * 6 + ["report"] * 12
        kinds += ["join"] * bool(others) + ["leave"] * (len(members) > 2)
        kind = chance.choice(kinds)
        pool = chance.choice({"join": others, "leave": members}.get(kind, list(range(SIZE))))
        event = {
            "kind": kind,
            "pool": pool,
            "tasks": chance.randrange(6),
        }
        choices, picked = _Choices(chance), -1
        if kind == "join":
            dispatcher.join(pool)
        elif kind == "leave":
            dispatcher.leave(pool)
        elif kind == "report":
            dispatcher.receive(Report(pool, cast(int, event["tasks"]), None))
        else:
            picked = cast(int, dispatcher.dispatch(choices))
            dispatcher.learn()
        events.append({**event, "uniforms": choices.used})
        decisions.append(
            {
                "pool": picked,
                "threshold": dispatcher.threshold,
                "green": list(dispatcher.green),
                "yellow": list(dispatcher.yellow),
            }
        )
    return events, decisions
