"""Whatever a caller passes: it works, or an InputError says in one sentence what is wrong.

What a whole number is, `tests/base/test_inputs.py` tests. Here, each place that takes one has a row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pytest

from evenly.core import (
    Dispatcher,
    JoinBelowThreshold,
    JoinShortestQueue,
    LearningRule,
    MessageCount,
    Pool,
    PowerOfD,
    Pull,
    RandomRouting,
    Report,
    StaleReports,
    ThresholdPolicy,
    make_policy,
)
from evenly.errors import InputError
from evenly.inputs import shown
from tests.core.support import KINDS, Case, Watched, filled, first, loads, report

T = TypeVar("T")

NO_COUNT: list[Any] = [  # what is not a count, whatever the limits
    *("", "x", "1", " 1", "½", "1e3", "\ud800", b"1"),
    *(True, 1.0, 0.5, -1.5, 1e308, 5e-324, float("nan"), float("inf"), 1j, Decimal(1), Fraction(1), np.float64(1)),
    *(-1, -(10**60), 10**60, 10**5000, np.int64(-1)),
    *([], [1], (1,), {}, {1}, np.array([1]), np.array([[1], [2]]), object(), int, len),
]
MOST = "1000000000000"


def member(pool: str) -> Dispatcher:
    """Return a dispatcher with one pool, which has 3 tasks."""
    dispatcher = Dispatcher(1)
    dispatcher.join(pool)
    dispatcher.receive(report(pool, 3))
    return dispatcher


def reporting(pool: str) -> StaleReports:
    """Return a policy of reports with one pool."""
    policy = StaleReports()
    policy.join(pool)
    return policy


def rejected(call: Callable[[], object]) -> str:
    """Return the one sentence with which the call is rejected."""
    with pytest.raises(InputError) as refusal:
        call()
    sentence = str(refusal.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 200
    return sentence


COUNTS: list[tuple[Callable[[Any], object], Any, str]] = [  # a call, a bad value, and the field with its range
    (Dispatcher, 0.5, f"threshold must be a whole number from 0 to {MOST}"),
    (lambda value: Dispatcher(value, None, 2), 3, "threshold must be a whole number from 0 to 2"),
    (lambda value: Dispatcher(0, None, value), -1, f"highest must be a whole number from 0 to {MOST}"),
    (lambda value: Dispatcher(1, None, 2).restart(value), 3, "threshold must be a whole number from 0 to 2"),
    (
        lambda value: member("a").receive(report("a", value)),
        -1,
        f"tasks of pool 'a' must be a whole number from 0 to {MOST}",
    ),
    (
        lambda value: member("a").add("a", value),
        -(10**12) - 1,
        f"tasks must be a whole number from -{MOST} to {MOST}",
    ),
    (ThresholdPolicy, -1, f"threshold must be a whole number from 0 to {MOST}"),
    (
        lambda value: ThresholdPolicy(value, None, 2),
        2,
        "threshold must be a whole number from 0 to 1 (less than the capacity)",
    ),
    (lambda value: ThresholdPolicy(0, None, value), 0, f"capacity must be a whole number from 1 to {MOST}"),
    (
        lambda value: ThresholdPolicy().raise_threshold(value),
        "1",
        f"threshold must be a whole number from 0 to {MOST}",
    ),
    (JoinShortestQueue, 0, f"capacity must be a whole number from 1 to {MOST}"),
    (
        lambda value: RandomRouting().join("a", value),
        10**12 + 1,
        f"tasks of pool 'a' must be a whole number from 0 to {MOST}",
    ),
    (lambda value: reporting("a").report("a", value), 0.5, f"tasks must be a whole number from 0 to {MOST}"),
    (JoinBelowThreshold, 0, f"threshold must be a whole number from 1 to {MOST}"),
    (
        lambda value: JoinBelowThreshold(value, 2),
        3,
        "threshold must be a whole number from 1 to 2 (the capacity)",
    ),
    (PowerOfD, 0, f"sample_size must be a whole number from 1 to {MOST}"),
    (Pull, 10**6 + 1, "capacity must be a whole number from 1 to 1000000"),
    (
        lambda value: Pool("a", 1, value, 2),
        3,
        "tasks of pool 'a' must be a whole number from 0 to 2 (the capacity)",
    ),
    (lambda value: Pool("a", 1, 0, value), 0, f"capacity must be a whole number from 1 to {MOST}"),
    (lambda value: Pool("a", value), -1, f"threshold must be a whole number from 0 to {MOST}"),
    (lambda value: Pool("a", 1).rethreshold(value), 0.5, f"threshold must be a whole number from 0 to {MOST}"),
    (LearningRule("0.5").fall_at, 2.0, f"pools must be a whole number from 0 to {MOST}"),
    (lambda value: LearningRule("0.5").step(value, 1.0, 2), 3.0, f"pools must be a whole number from 0 to {MOST}"),  # type: ignore[arg-type]
    (
        lambda value: LearningRule("0.5").step(3, 0, value),
        4,
        "yellow must be a whole number from 0 to 3 (the pools)",
    ),
    (
        lambda value: LearningRule("0.5").step(3, value, 1),
        2,
        "green must be a whole number from 0 to 1 (the yellow tokens)",
    ),
    (
        lambda value: make_policy("threshold", threshold=value),
        -1,
        f"threshold must be a whole number from 0 to {MOST}",
    ),
    (lambda value: make_policy("jbt", threshold=value), 0, f"threshold must be a whole number from 1 to {MOST}"),
    (
        lambda value: make_policy("power-of-d", sample_size=value),
        0,
        f"sample_size must be a whole number from 1 to {MOST}",
    ),
    (lambda value: make_policy("jsq", capacity=value), 0, f"capacity must be a whole number from 1 to {MOST}"),
    (lambda value: make_policy("pull", capacity=value), 0, "capacity must be a whole number from 1 to 1000000"),
]


@pytest.mark.parametrize(("call", "value", "field"), COUNTS, ids=lambda each: each if "must" in str(each) else "")
def test_what_is_not_a_count_is_rejected(call: Callable[[Any], object], value: Any, field: str) -> None:  # noqa: ANN401
    assert rejected(partial(call, value)) == f"{field}, not {value!r}."


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: make_policy("jbt"), "The policy jbt needs a threshold."),
        (lambda: make_policy("pull"), "The policy pull needs a capacity: it holds one token for each free slot."),
        (lambda: make_policy("jsq", alpha=0.5), "alpha is for policy threshold or threshold-utility, not jsq."),
    ],
)
def test_parameters_that_are_missing_or_too_many_are_named(call: Callable[[], object], sentence: str) -> None:
    assert rejected(call) == sentence


def test_numpy_integers_become_plain_ones() -> None:
    policy = ThresholdPolicy(np.int8(127), LearningRule("0.5"))  # type: ignore[arg-type]
    policy.join("a", np.int8(127))  # type: ignore[arg-type]
    policy.arrive(first)
    assert (policy.tasks("a"), policy.threshold) == (128, 128)
    counting = JoinShortestQueue(np.int16(300))  # type: ignore[arg-type]
    counting.join("a", np.int8(127))  # type: ignore[arg-type]
    counting.arrive(first)
    assert counting.tasks("a") == 128
    assert LearningRule("0.9").step(np.int8(100), np.int8(10), np.int8(100)) == -1  # type: ignore[arg-type]
    dispatcher = member("a")
    dispatcher.receive(report("a", np.int8(127)))  # type: ignore[arg-type]
    dispatcher.add("a", np.int8(1))  # type: ignore[arg-type]
    assert dispatcher.estimate("a") == 128


def test_the_limits_themselves_are_allowed() -> None:
    most = 10**12
    assert Dispatcher(2, None, 2).threshold == 2
    assert Dispatcher(most).threshold == most
    assert ThresholdPolicy(1, None, 2).threshold == 1
    policy = RandomRouting(most)
    policy.join("a", most)
    assert policy.tasks("a") == most
    JoinBelowThreshold(2, 2)
    PowerOfD(most)
    Pull(1)
    assert LearningRule(0.5).fall_at(most) == most // 2
    assert LearningRule(0.5).fall_at(0) == 0
    assert LearningRule(0.5).step(most, most, most) == -1
    assert LearningRule(0.5).step(0, 0, 0) == 0


def test_unknown_policies_are_rejected() -> None:
    name: Any
    for name in (None, "", "JSQ", "x" * 10**6, 1, [], ["jsq"], len):
        with pytest.raises(InputError, match="policy must be one of threshold, jsq"):
            make_policy(name)


def test_a_report_of_a_pool_that_is_no_member_is_rejected() -> None:
    with pytest.raises(InputError, match="Pool 'stranger' is not a member"):
        reporting("a").report("stranger", 3)


class Mute:
    """An object that cannot be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("alpha", "quoted"),
    [
        ("x", "'x'"),
        ("", "''"),
        ("1/2", "'1/2'"),
        ("\ud800", "'\\ud800'"),
        (float("nan"), "nan"),
        ("sNaN123", "sNaN123"),
        ("inf", "inf"),
        (0, "0"),
        ("1", "1"),
        (1.5, "1.5"),
        (Decimal("-0.5"), "-0.5"),
        (np.float64(1.5), "1.5"),
        (Fraction(1, 2), "1/2"),
        ([0.5], "[0.5]"),
        (True, "True"),
        (10**5000, "a number with thousands of digits"),
        ("1e999999999999999999999999", "'1e999999999999999999999999'"),
        (Mute(), "an object of type Mute"),
    ],
    ids=lambda value: ascii(shown(value)),
)
def test_what_is_not_a_fraction_is_rejected(alpha: Any, quoted: str) -> None:  # noqa: ANN401
    assert rejected(partial(LearningRule, alpha)) == f"alpha must lie strictly between 0 and 1, not {quoted}."


def test_an_alpha_that_a_policy_is_made_with_is_checked() -> None:
    sentence = rejected(lambda: make_policy("threshold", alpha="1.5"))
    assert sentence == "alpha must lie strictly between 0 and 1, not 1.5."
    assert "not None." in rejected(lambda: LearningRule(None))  # type: ignore[arg-type]


def test_an_alpha_has_at_most_fifty_decimals() -> None:
    for alpha in (5e-324, 1e-51, "1e-999999", "0." + "1" * 10**5, Decimal("1e-51")):
        sentence = rejected(partial(LearningRule, alpha))
        assert sentence.startswith("alpha must have at most 50 decimal places, not ")
    assert LearningRule("1e-50").alpha == Fraction(1, 10**50)


def test_a_rule_must_be_a_rule() -> None:
    dispatcher = Dispatcher(1, LearningRule("0.5"))
    rule: Any
    for rule in ("0.5", True, LearningRule):
        for call in (
            partial(Dispatcher, 1, rule),
            partial(ThresholdPolicy, 1, rule),
            partial(setattr, dispatcher, "rule", rule),
        ):
            assert rejected(call).startswith("rule must be a LearningRule or None, not ")
    assert isinstance(dispatcher.rule, LearningRule)


def test_the_pools_of_a_dispatcher_are_checked() -> None:
    dispatcher = Dispatcher(1)
    pool: Any
    for pool in (None, [], {}, "x", 5):
        for call in (dispatcher.leave, dispatcher.estimate):
            assert "is not a member" in rejected(partial(call, pool))
        assert "is not a member" in rejected(partial(dispatcher.add, pool, 1))
    for pool in (None, []):
        assert rejected(partial(dispatcher.join, pool)).startswith("A pool must be named by a hashable value")
        assert rejected(partial(Pool, pool, 1)).startswith("A pool must be named by a hashable value")


def test_messages_of_another_kind_are_rejected() -> None:
    dispatcher = member("a")
    message: Any
    for message in (None, "green", ("a", 1, None)):
        assert rejected(partial(dispatcher.receive, message)).startswith("report must be a Report, not ")


def test_a_bad_report_changes_nothing() -> None:
    dispatcher = member("a")
    dispatcher.restart(2)
    for tasks, color in [("x", None), (0, "green"), (True, None)]:
        bad = Report("a", tasks, color)  # type: ignore[arg-type]
        rejected(partial(dispatcher.receive, bad))
        assert dispatcher.estimate("a") == 3
    rejected(partial(dispatcher.add, "a", 0.5))  # type: ignore[arg-type]
    assert dispatcher.estimate("a") == 3


def test_a_token_must_have_a_color() -> None:
    dispatcher = member("a")
    message = Report("a", 0, "green")  # type: ignore[arg-type]
    assert rejected(lambda: dispatcher.receive(message)) == "color must be a Color or None, not 'green'."
    assert not dispatcher.yellow
    assert not dispatcher.receive(Report([], 0, None))  # type: ignore[arg-type]
    count = MessageCount()
    assert rejected(lambda: count.count("green")) == "color must be a Color, not 'green'."  # type: ignore[arg-type]


def test_choose_must_be_a_function_that_returns_a_candidate() -> None:
    policy = RandomRouting()
    filled(policy, [0, 0])
    bad: Any
    for bad in (None, "first", 0, lambda: 0, lambda pools, rng: pools[0]):
        assert rejected(partial(policy.arrive, bad)).startswith(
            "choose must be a function of the candidates, not "
        )
    for bad in (None, "x", [], 7, 0.5):
        sentence = rejected(lambda: policy.arrive(lambda _: bad))  # noqa: B023
        assert sentence == f"choose must return one of the candidates, not {bad!r}."
    assert loads(policy) == {0: 0, 1: 0}


@pytest.mark.parametrize("case", [case for case in KINDS if "round-robin" not in case.name], ids=str)
def test_a_rejected_choice_changes_nothing(case: Case) -> None:
    policy = case.make()
    filled(policy, [0, 0])
    sentence = rejected(lambda: policy.arrive(lambda _: "x"))  # type: ignore[arg-type]
    assert sentence == "choose must return one of the candidates, not 'x'."
    assert loads(policy) == {0: 0, 1: 0}
    watched = Watched()
    assert policy.arrive(watched) == 0
    assert len(watched.seen[0]) > 1


def test_a_pool_that_has_no_token_is_no_candidate() -> None:
    policy = ThresholdPolicy(1)
    filled(policy, [0, 5])
    assert rejected(lambda: policy.arrive(lambda _: 1)) == "choose must return one of the candidates, not 1."  # type: ignore[arg-type]
    sampling = PowerOfD(2)
    filled(sampling, [0, 0, 0])
    assert rejected(lambda: sampling.arrive(lambda _: 0)) == "choose must return one of the candidates, not 0."  # type: ignore[arg-type]


def test_errors_inside_the_choice_are_the_callers() -> None:
    def broken(candidates: Sequence[T], /) -> T:
        raise TypeError("mine")

    policy = ThresholdPolicy(1)
    policy.join("a")
    with pytest.raises(TypeError, match="mine"):
        policy.arrive(broken)


def test_a_rejected_choice_is_not_learned_from() -> None:
    # The rule would raise the threshold at this arrival, but the task is not placed.
    policy = ThresholdPolicy(0, LearningRule("0.5"))
    filled(policy, [1, 1])
    rejected(lambda: policy.arrive(lambda _: "x"))  # type: ignore[arg-type]
    assert not policy.dispatcher.learn()
    assert policy.threshold == 0


def test_long_values_are_cut() -> None:
    assert len(rejected(lambda: Dispatcher("9" * 10**6))) < 150  # type: ignore[arg-type]
    policy = RandomRouting()
    assert len(rejected(lambda: policy.leave("x" * 10**6))) < 150
