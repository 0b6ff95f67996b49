"""The dispatcher's role: its estimates, which token it uses, and when it moves the threshold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.core import Dispatcher, LearningRule
from evenly.errors import InputError
from tests.core.support import Watched, first, ordered, report

MANY = 9  # more tasks than any threshold here


def dispatcher(
    *tasks: int, alpha: str | None = None, threshold: int = 2, highest: int | None = None
) -> Dispatcher:
    """Return a dispatcher of the pools a to j, which have reported these tasks, and many if none are given."""
    made = Dispatcher(threshold, None if alpha is None else LearningRule(alpha), highest)
    for place, pool in enumerate("abcdefghij"):
        made.join(pool)
        assert made.receive(report(pool, tasks[place] if place < len(tasks) else MANY))
    return made


def test_green_tokens_are_used_first() -> None:
    watched = Watched(1)
    tokens = dispatcher(1, 2, 1)
    assert tokens.dispatch(watched) == "c"
    assert watched.seen == [["a", "c"]]
    assert list(tokens.green) == ["a"]
    assert list(tokens.yellow) == ["a", "b", "c"]


def test_yellow_tokens_are_used_second() -> None:
    watched = Watched(0)
    tokens = dispatcher(MANY, 2, 2)
    assert tokens.dispatch(watched) == "b"
    assert watched.seen == [["b", "c"]]
    assert list(tokens.yellow) == ["c"]


def test_without_tokens_any_pool_is_picked() -> None:
    watched = Watched(4)
    assert dispatcher().dispatch(watched) == "e"
    assert watched.seen == [list("abcdefghij")]


def test_without_pools_there_is_no_pick() -> None:
    made = Dispatcher(1, LearningRule(0.5), None)
    assert made.dispatch(first) is None
    assert not made.learn()


def test_a_pool_that_has_not_reported_has_no_tokens_but_can_be_picked() -> None:
    made = Dispatcher(2)
    made.join("a")
    assert made.estimate("a") is None
    assert not made.yellow
    assert made.dispatch(first) == "a"
    assert made.estimate("a") is None  # one more than an unknown number
    assert made.receive(report("a", 1))
    assert made.estimate("a") == 1


def test_green_implies_yellow_and_no_token_is_held_twice() -> None:
    tokens = dispatcher()
    for _ in range(2):
        assert tokens.receive(report("a", 1))
        assert list(tokens.green) == list(tokens.yellow) == ["a"]


@pytest.mark.parametrize("tasks", range(5))
def test_tokens_follow_from_the_estimate(tasks: int) -> None:
    tokens = dispatcher()
    tokens.receive(report("a", 0))
    tokens.receive(report("a", tasks))
    assert tokens.estimate("a") == tasks
    assert ("a" in tokens.green, "a" in tokens.yellow) == (tasks < 2, tasks <= 2)


def test_a_task_is_counted_at_the_pick() -> None:
    tokens = dispatcher(0, threshold=2)
    for estimate in (1, 2, 3):
        assert tokens.dispatch(first) == "a"
        assert tokens.estimate("a") == estimate
    assert not tokens.yellow


def test_a_place_that_is_given_back_lowers_the_estimate_but_not_below_zero() -> None:
    tokens = dispatcher(1, threshold=1)
    tokens.dispatch(lambda pools: pools[0])
    assert tokens.estimate("a") == 2
    tokens.add("a", -1)
    assert tokens.estimate("a") == 1
    assert list(tokens.yellow) == ["a"]
    tokens.add("a", -5)
    assert tokens.estimate("a") == 0


@given(
    events=st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(0, 5), st.integers(0, 3))),
    threshold=st.integers(0, 4),
)
def test_the_estimate_is_the_last_report_and_the_picks_after_it(
    events: list[tuple[str, int | None, int]], threshold: int
) -> None:
    made = Dispatcher(threshold, LearningRule("0.5"))
    for pool in "ab":
        made.join(pool)
        made.receive(report(pool, 0))
    expected = {"a": 0, "b": 0}
    for pool, tasks, index in events:
        if tasks is None:
            picked = str(made.dispatch(lambda candidates: candidates[index % len(candidates)]))  # noqa: B023
            expected[picked] += 1
            made.learn()
        else:
            made.receive(report(pool, tasks))
            expected[pool] = tasks
        assert {name: made.estimate(name) for name in "ab"} == expected
        assert ordered(made.green) == [name for name in "ab" if expected[name] < made.threshold]
        assert ordered(made.yellow) == [name for name in "ab" if expected[name] <= made.threshold]


def test_reports_of_non_members_are_ignored() -> None:
    tokens = dispatcher()
    assert tokens.receive(report("z", 0)) is False
    assert not tokens.green
    assert "z" not in tokens.pools


def test_a_pool_that_leaves_loses_its_tokens() -> None:
    tokens = dispatcher(1, 1)
    tokens.leave("a")
    assert list(tokens.green) == list(tokens.yellow) == ["b"]
    assert "a" not in tokens.pools
    assert not tokens.receive(report("a", 1))
    with pytest.raises(InputError, match="'a'"):
        tokens.estimate("a")
    tokens.join("a")
    assert tokens.estimate("a") is None
    assert list(tokens.yellow) == ["b"]


def test_a_change_rebuilds_the_tokens_from_the_estimates() -> None:
    tokens = dispatcher(MANY, 2, 3, 0, 4, 1)
    tokens.restart(3)
    assert (list(tokens.green), list(tokens.yellow)) == (["b", "d", "f"], ["b", "c", "d", "f"])
    tokens.restart(1)
    assert (list(tokens.green), list(tokens.yellow)) == (["d"], ["d", "f"])


def test_after_a_change_tokens_have_the_order_of_the_members() -> None:
    # Kernels reproduce it. Where a pool has left, the last one has taken its place.
    tokens = dispatcher(0, 0, 0, 0)
    tokens.leave("b")
    tokens.receive(report("j", 0))
    tokens.receive(report("a", MANY))
    tokens.receive(report("a", 0))
    assert list(tokens.green) == ["j", "d", "c", "a"]
    tokens.restart(3)
    assert list(tokens.pools) == list("ajcdefghi")
    assert list(tokens.green) == list(tokens.yellow) == ["a", "j", "c", "d"]


def test_on_a_rise_yellow_turns_green_and_stays_yellow() -> None:
    tokens = dispatcher(2, alpha="0.5")
    assert tokens.dispatch(first) == "a"
    assert tokens.receive(report("b", 2))
    assert tokens.learn()
    assert tokens.threshold == 3
    assert list(tokens.green) == ["b"]
    assert list(tokens.yellow) == ["a", "b"]  # a has 3 with the task


def test_on_a_fall_green_turns_yellow_and_old_yellow_is_void() -> None:
    tokens = dispatcher(*[1] * 6, MANY, 2, alpha="0.4")
    assert tokens.dispatch(first) == "a"
    assert tokens.learn()
    assert tokens.threshold == 1
    assert not tokens.green
    assert list(tokens.yellow) == list("bcdef")


def test_the_rule_sees_the_tokens_before_the_dispatch() -> None:
    # Two yellow tokens before, one after: the threshold stays. Six green before, five after: it falls.
    stays = dispatcher(2, 2, alpha="0.4")
    stays.dispatch(first)
    assert not stays.learn()
    falls = dispatcher(*[1] * 6, alpha="0.4")
    falls.dispatch(first)
    assert falls.learn()
    assert falls.threshold == 1


def test_a_step_is_applied_once() -> None:
    tokens = dispatcher(alpha="0.5")
    tokens.dispatch(first)
    assert tokens.learn()
    assert not tokens.learn()
    assert tokens.threshold == 3


def test_the_threshold_never_exceeds_the_highest() -> None:
    capped = dispatcher(alpha="0.5", highest=2)
    capped.dispatch(first)
    assert not capped.learn()
    assert capped.threshold == 2


def test_the_threshold_never_goes_below_zero() -> None:
    # No report can lead here: a rule that always falls.
    class Falling(LearningRule):
        def step(self, pools: int, green: int, yellow: int) -> int:
            return -1

    floor = Dispatcher(1, Falling("0.5"))
    floor.join("a")
    for _ in range(3):
        floor.dispatch(first)
        floor.learn()
    assert floor.threshold == 0


def test_without_a_rule_the_threshold_stays() -> None:
    tokens = dispatcher()
    tokens.dispatch(first)
    assert not tokens.learn()


def test_membership_errors_name_the_pool() -> None:
    tokens = dispatcher()
    with pytest.raises(ValueError, match="'a'"):
        tokens.join("a")
    for call in (tokens.leave, tokens.estimate, lambda pool: tokens.add(pool, 1)):
        with pytest.raises(ValueError, match="'z'"):
            call("z")
