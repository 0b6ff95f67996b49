"""Whatever a caller passes: it works, or an InputError says in one sentence what is wrong."""

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
    JoinIdleQueue,
    JoinShortestQueue,
    LearningRule,
    MessageCount,
    Pool,
    PowerOfD,
    Pull,
    RandomRouting,
    Report,
    RoundRobin,
    ThresholdNotice,
    ThresholdPolicy,
    make_policy,
)
from evenly.errors import InputError
from evenly.inputs import shown
from tests.core.support import CASES, Case, Watched, filled, first, loads, notice, report

T = TypeVar("T")

NO_COUNT: list[Any] = [  # what is not a count, whatever the limits
    *("", "x", "1", " 1", "½", "1e3", "\ud800", b"1"),
    *(True, 1.0, 0.5, -1.5, 1e308, 5e-324, float("nan"), float("inf"), 1j, Decimal(1), Fraction(1), np.float64(1)),
    *(-1, -(10**60), 10**60, 10**5000, np.int64(-1)),
    *([], [1], (1,), {}, {1}, np.array([1]), np.array([[1], [2]]), object(), int, len),
]
STRANGERS: list[Any] = [None, [], {}, "x", 5]
COUNTS: dict[str, Callable[[Any], object]] = {
    "threshold of a dispatcher": Dispatcher,
    "highest of a dispatcher": lambda value: Dispatcher(0, None, value),
    "epoch of a dispatcher": lambda value: Dispatcher(0, epoch=value),
    "restart": lambda value: Dispatcher(0).restart(value),
    "epoch of a restart": lambda value: Dispatcher(0).restart(0, value),
    "tasks of a report": lambda value: member("a").receive(report("a", value)),
    "epoch of a report": lambda value: member("a").receive(report("a", 0, value)),
    "unseen picks": lambda value: member("a").receive(report("a", 0), value),
    "threshold": ThresholdPolicy,
    "threshold with a capacity": lambda value: ThresholdPolicy(value, None, 5),
    "capacity": lambda value: ThresholdPolicy(0, None, value),
    "raise_threshold": lambda value: ThresholdPolicy().raise_threshold(value),
    "raise_threshold with a capacity": lambda value: ThresholdPolicy(0, None, 5).raise_threshold(value),
    "jsq": JoinShortestQueue,
    "random": RandomRouting,
    "round robin": RoundRobin,
    "jiq": JoinIdleQueue,
    "jbt": JoinBelowThreshold,
    "jbt's capacity": lambda value: JoinBelowThreshold(1, value),
    "power of d": PowerOfD,
    "power of d's capacity": lambda value: PowerOfD(2, value),
    "pull": Pull,
    "tasks of a pool": lambda value: Pool("a", notice(1), value),
    "capacity of a pool": lambda value: Pool("a", notice(1), 0, value),
    "threshold of a notice": lambda value: ThresholdNotice(value, 0),
    "epoch of a notice": lambda value: ThresholdNotice(0, value),
    "fall_at": LearningRule("0.5").fall_at,
    "step: pools": lambda value: LearningRule("0.5").step(value, 0, 0),
    "step: green": lambda value: LearningRule("0.5").step(5, value, 5),
    "step: yellow": lambda value: LearningRule("0.5").step(5, 0, value),
    "make: threshold": lambda value: make_policy("threshold", threshold=value),
    "make: jbt": lambda value: make_policy("jbt", threshold=value),
    "make: sample_size": lambda value: make_policy("power-of-d", sample_size=value),
    "make: capacity": lambda value: make_policy("jsq", capacity=value),
    "make: pull": lambda value: make_policy("pull", capacity=value),
}


def member(pool: str) -> Dispatcher:
    """Return a dispatcher with one pool, which has 3 tasks."""
    dispatcher = Dispatcher(1)
    dispatcher.join(pool)
    dispatcher.receive(report(pool, 3))
    return dispatcher


def rejected(call: Callable[[], object]) -> str:
    """Return the one sentence with which the call is rejected."""
    with pytest.raises(InputError) as refusal:
        call()
    sentence = str(refusal.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert len(sentence) < 200
    return sentence


@pytest.mark.parametrize("name", COUNTS)
def test_what_is_not_a_count_is_rejected(name: str) -> None:
    for value in NO_COUNT:
        assert "must be a whole number from" in rejected(partial(COUNTS[name], value))


@pytest.mark.parametrize("name", COUNTS)
def test_numpy_integers_count(name: str) -> None:
    COUNTS[name](np.int8(1))


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


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Dispatcher(0, None, -1), "highest must be a whole number from 0 to 1000000000000, not -1."),
        (lambda: Dispatcher(3, None, 2), "threshold must be a whole number from 0 to 2, not 3."),
        (lambda: Dispatcher(1, None, 2).restart(3), "threshold must be a whole number from 0 to 2, not 3."),
        (
            lambda: ThresholdPolicy(2, None, 2),
            "threshold must be a whole number from 0 to 1 (less than the capacity), not 2.",
        ),
        (lambda: ThresholdPolicy(0, None, 0), "capacity must be a whole number from 1 to 1000000000000, not 0."),
        (
            lambda: JoinBelowThreshold(3, 2),
            "threshold must be a whole number from 1 to 2 (the capacity), not 3.",
        ),
        (lambda: JoinBelowThreshold(0), "threshold must be a whole number from 1 to 1000000000000, not 0."),
        (lambda: Pull(10**6 + 1), "capacity must be a whole number from 1 to 1000000, not 1000001."),
        (lambda: PowerOfD(0), "sample_size must be a whole number from 1 to 1000000000000, not 0."),
        (
            lambda: Pool("a", notice(1), 3, 2),
            "tasks of pool 'a' must be a whole number from 0 to 2 (the capacity), not 3.",
        ),
        (
            lambda: RandomRouting().join("a", 10**12 + 1),
            "tasks of pool 'a' must be a whole number from 0 to 1000000000000, not 1000000000001.",
        ),
        (
            lambda: LearningRule(0.5).step(3.0, 1.0, 2),  # type: ignore[arg-type]
            "pools must be a whole number from 0 to 1000000000000, not 3.0.",
        ),
        (lambda: LearningRule(0.5).step(3, 0, 4), "yellow must be a whole number from 0 to 3 (the pools), not 4."),
        (
            lambda: LearningRule(0.5).step(3, 2, 1),
            "green must be a whole number from 0 to 1 (the yellow tokens), not 2.",
        ),
        (
            lambda: LearningRule(0.5).step(10**12 + 1, 0, 0),
            "pools must be a whole number from 0 to 1000000000000, not 1000000000001.",
        ),
        (
            lambda: member("a").receive(report("a", -1)),
            "tasks of pool 'a' must be a whole number from 0 to 1000000000000, not -1.",
        ),
        (
            lambda: member("a").receive(report("a", 0, -1)),
            "epoch of pool 'a' must be a whole number from 0 to 9223372036854775807, not -1.",
        ),
        (
            lambda: member("a").receive(report("a", 0), -1),
            "unseen must be a whole number from 0 to 1000000000000, not -1.",
        ),
        (
            lambda: member("a").add("a", -(10**12) - 1),
            "tasks must be a whole number from -1000000000000 to 1000000000000, not -1000000000001.",
        ),
        (lambda: make_policy("jbt"), "The policy jbt needs a threshold."),
        (lambda: make_policy("pull"), "The policy pull needs a capacity: it holds one token for each free slot."),
        (lambda: make_policy("jsq", alpha=0.5), "alpha is for policy threshold or threshold-utility, not jsq."),
        (
            lambda: make_policy("power-of-d", sample_size=0),
            "sample_size must be a whole number from 1 to 1000000000000, not 0.",
        ),
    ],
)
def test_sentences(call: Callable[[], object], sentence: str) -> None:
    assert rejected(call) == sentence


def test_the_limits_themselves_are_allowed() -> None:
    most = 10**12
    assert Dispatcher(2, None, 2).restart(2).threshold == 2
    assert Dispatcher(most).restart(0).threshold == 0
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


@pytest.mark.parametrize("name", [None, "", "JSQ", "x" * 10**6, 1, [], ["jsq"], len], ids=shown)
def test_unknown_policies_are_rejected(name: Any) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match="policy must be one of threshold, jsq"):
        make_policy(name)


@pytest.mark.parametrize(
    ("alpha", "quoted"),
    [
        ("x", "'x'"),
        ("", "''"),
        ("1/2", "'1/2'"),
        ("\ud800", "'\\ud800'"),
        ("nan", "nan"),
        ("sNaN123", "sNaN123"),
        ("1.5", "1.5"),
        (Decimal("1.5"), "1.5"),
        (np.float64(1.5), "1.5"),
        (Fraction(1, 2), "1/2"),
        ([0.5], "[0.5]"),
        (None, "None"),
        (True, "True"),
        (1j, "1j"),
        (1e308, "1e+308"),
        (10**60, "1" + 56 * "0" + "..."),
        (10**5000, "a number with thousands of digits"),
        ("1e999999999999999999999999", "'1e999999999999999999999999'"),
    ],
    ids=lambda value: ascii(shown(value)),
)
def test_what_is_not_a_fraction_is_rejected(alpha: Any, quoted: str) -> None:  # noqa: ANN401
    for make in (LearningRule, lambda value: make_policy("threshold", alpha=value)):
        if make is LearningRule or alpha is not None:
            sentence = rejected(partial(make, alpha))
            assert sentence == f"alpha must lie strictly between 0 and 1, not {quoted}."


@pytest.mark.parametrize("alpha", [5e-324, 1e-51, "1e-999999", "0." + "1" * 10**5, Decimal("1e-51")], ids=shown)
def test_an_alpha_with_too_many_decimals_is_rejected(alpha: Any) -> None:  # noqa: ANN401
    assert rejected(lambda: LearningRule(alpha)).startswith("alpha must have at most 50 decimal places, not ")


def test_an_alpha_of_fifty_decimals_is_allowed() -> None:
    assert LearningRule("1e-50").alpha == Fraction(1, 10**50)


@pytest.mark.parametrize("rule", ["0.5", 0.5, True, LearningRule, object()])
def test_a_rule_must_be_a_rule(rule: Any) -> None:  # noqa: ANN401
    dispatcher = Dispatcher(1, LearningRule("0.5"))
    for call in (
        lambda: Dispatcher(1, rule),
        lambda: ThresholdPolicy(1, rule),
        lambda: setattr(dispatcher, "rule", rule),
    ):
        assert rejected(call).startswith("rule must be a LearningRule or None, not ")
    assert isinstance(dispatcher.rule, LearningRule)


@pytest.mark.parametrize("pool", [None, [], {}, ([],)], ids=str)
def test_a_pool_needs_a_name(pool: Any) -> None:  # noqa: ANN401
    calls = [case.make().join for case in CASES] + [Dispatcher(1).join, lambda name: Pool(name, notice(1))]
    for call in calls:
        assert rejected(partial(call, pool)).startswith("A pool must be named by a hashable value")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_events_at_what_cannot_be_a_pool_are_rejected(case: Case) -> None:
    policy = case.make()
    filled(policy, [0, 1])
    for pool in STRANGERS:
        for event in (policy.leave, policy.depart, policy.record_arrival, policy.tasks):
            assert "is not a member" in rejected(partial(event, pool))
    assert loads(policy) == {0: 0, 1: 1}


def test_the_dispatcher_rejects_tokens_of_strangers() -> None:
    dispatcher = Dispatcher(1)
    for pool in STRANGERS:
        for call in (dispatcher.leave, dispatcher.estimate):
            assert "is not a member" in rejected(partial(call, pool))
        assert "is not a member" in rejected(partial(dispatcher.add, pool, 1))
        assert not dispatcher.awaits(pool)


@pytest.mark.parametrize("message", [None, "green", ("a", 1, 0, None), notice(1)])
def test_only_reports_are_received(message: Any) -> None:  # noqa: ANN401
    dispatcher = member("a")
    assert rejected(lambda: dispatcher.receive(message)).startswith("report must be a Report, not ")


def test_a_bad_report_changes_nothing() -> None:
    dispatcher = member("a")
    dispatcher.restart(2)
    for tasks, epoch, color in [("x", 1, None), (0, "x", None), (0, 1, "green"), (True, 1, None), (0, True, None)]:
        bad = Report("a", tasks, epoch, color)  # type: ignore[arg-type]
        rejected(partial(dispatcher.receive, bad))
        assert dispatcher.estimate("a") == 3
        assert dispatcher.awaits("a")
    rejected(partial(dispatcher.receive, report("a", 0, 1), -1))
    assert dispatcher.estimate("a") == 3


@pytest.mark.parametrize("value", ["x", None, 0.5, True, [1], 10**60, -(10**60)])
def test_an_estimate_changes_by_a_whole_number(value: Any) -> None:  # noqa: ANN401
    dispatcher = member("a")
    assert rejected(partial(dispatcher.add, "a", value)).startswith("tasks must be a whole number from -1000")
    assert dispatcher.estimate("a") == 3


def test_numpy_integers_in_a_report_become_plain_ones() -> None:
    dispatcher = member("a")
    dispatcher.receive(report("a", np.int8(127)))  # type: ignore[arg-type]
    dispatcher.add("a", np.int8(1))  # type: ignore[arg-type]
    assert dispatcher.estimate("a") == 128


def test_a_token_must_have_a_color() -> None:
    dispatcher = member("a")
    message = Report("a", 0, 0, "green")  # type: ignore[arg-type]
    assert rejected(lambda: dispatcher.receive(message)) == "color must be a Color or None, not 'green'."
    assert not dispatcher.yellow
    assert not dispatcher.receive(Report([], 0, 0, None))  # type: ignore[arg-type]
    count = MessageCount()
    assert rejected(lambda: count.count("green")) == "color must be a Color, not 'green'."  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, 3, (3, 1), report("a", 1)])
def test_a_pool_takes_notices_only(value: Any) -> None:  # noqa: ANN401
    pool = Pool("a", notice(1))
    for call in (lambda: Pool("a", value), lambda: pool.rethreshold(value)):
        assert rejected(call).startswith("notice must be a ThresholdNotice, not ")


@pytest.mark.parametrize("case", [case for case in CASES if "round-robin" not in case.name], ids=str)
@pytest.mark.parametrize("choose", [None, "first", 0, lambda: 0, lambda pools, rng: pools[0]])
def test_choose_must_be_a_function_of_the_candidates(case: Case, choose: Any) -> None:  # noqa: ANN401
    policy = case.make()
    filled(policy, [0, 0])
    assert rejected(lambda: policy.arrive(choose)).startswith("choose must be a function of the candidates, not ")
    assert loads(policy) == {0: 0, 1: 0}


@pytest.mark.parametrize("case", [case for case in CASES if "round-robin" not in case.name], ids=str)
@pytest.mark.parametrize("picked", [None, "x", [], 7, 0.5])
def test_choose_must_return_a_candidate(case: Case, picked: Any) -> None:  # noqa: ANN401
    policy = case.make()
    filled(policy, [0, 0])
    before = loads(policy)
    sentence = rejected(lambda: policy.arrive(lambda _: picked))
    assert sentence == f"choose must return one of the candidates, not {picked!r}."
    assert loads(policy) == before
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
    assert policy.dispatcher.learn() is None
    assert policy.threshold == 0


def test_long_values_are_cut() -> None:
    assert len(rejected(lambda: Dispatcher("9" * 10**6))) < 150  # type: ignore[arg-type]
    policy = RandomRouting()
    assert len(rejected(lambda: policy.leave("x" * 10**6))) < 150
