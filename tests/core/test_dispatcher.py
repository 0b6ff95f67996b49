"""The dispatcher's role: which token it uses, which messages it accepts, when it moves the threshold."""

import pytest

from evenly.core import Dispatcher, LearningRule, TokenMessage
from evenly.errors import InputError
from tests.core.support import Watched, first, green, notice, yellow


def dispatcher(
    *messages: TokenMessage, alpha: str | None = None, threshold: int = 2, highest: int | None = None
) -> Dispatcher:
    """Return a dispatcher of the pools a to j that has received these messages."""
    made = Dispatcher(threshold, None if alpha is None else LearningRule(alpha), highest)
    for pool in "abcdefghij":
        made.join(pool)
    for message in messages:
        assert made.receive(message)
    return made


def test_green_tokens_are_used_first() -> None:
    watched = Watched(1)
    tokens = dispatcher(green("a"), yellow("b"), green("c"))
    assert tokens.dispatch(watched) == "c"
    assert watched.seen == [["a", "c"]]
    assert list(tokens.green) == ["a"]
    assert list(tokens.yellow) == ["a", "b", "c"]


def test_yellow_tokens_are_used_second() -> None:
    watched = Watched(0)
    tokens = dispatcher(yellow("b"), yellow("c"))
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
    assert made.learn() is None


def test_green_implies_yellow_and_no_token_is_held_twice() -> None:
    tokens = dispatcher(green("a"), green("a"), yellow("a"))
    assert list(tokens.green) == list(tokens.yellow) == ["a"]


def test_messages_from_non_members_are_ignored() -> None:
    tokens = dispatcher()
    assert tokens.receive(green("z")) is False
    assert not tokens.green


def test_messages_of_an_old_epoch_are_ignored() -> None:
    tokens = dispatcher(alpha="0.5")  # no tokens: the next dispatch raises the threshold
    tokens.dispatch(first)
    assert tokens.learn() == notice(3, 1)
    assert not tokens.receive(green("a", 0))
    assert not tokens.receive(yellow("a", 0))
    assert not tokens.green
    assert not tokens.yellow
    assert tokens.receive(yellow("a", 1))
    assert list(tokens.yellow) == ["a"]


def test_a_pool_that_leaves_loses_its_tokens() -> None:
    tokens = dispatcher(green("a"), green("b"))
    tokens.leave("a")
    assert list(tokens.green) == list(tokens.yellow) == ["b"]
    assert "a" not in tokens.pools
    assert not tokens.receive(green("a"))


def test_on_a_rise_yellow_turns_green_and_stays_yellow() -> None:
    tokens = dispatcher(yellow("a"), alpha="0.5")
    tokens.dispatch(first)
    assert tokens.receive(yellow("b"))
    assert tokens.learn() == notice(3, 1)
    assert list(tokens.green) == list(tokens.yellow) == ["b"]


def test_on_a_fall_green_turns_yellow_and_old_yellow_is_void() -> None:
    tokens = dispatcher(yellow("h"), *(green(pool) for pool in "abcdef"), alpha="0.4")
    assert tokens.dispatch(first) == "a"
    assert tokens.learn() == notice(1, 1)
    assert not tokens.green
    assert list(tokens.yellow) == list("fbcde")


def test_the_rule_sees_the_tokens_before_the_dispatch() -> None:
    # Two yellow tokens before, one after: the threshold stays. Six green before, five after: it falls.
    stays = dispatcher(yellow("a"), yellow("b"), alpha="0.4")
    stays.dispatch(first)
    assert stays.learn() is None
    falls = dispatcher(*(green(pool) for pool in "abcdef"), alpha="0.4")
    falls.dispatch(first)
    assert falls.learn() == notice(1, 1)


def test_a_step_is_applied_once() -> None:
    tokens = dispatcher(alpha="0.5")
    tokens.dispatch(first)
    assert tokens.learn() is not None
    assert tokens.learn() is None
    assert (tokens.threshold, tokens.epoch) == (3, 1)


def test_the_threshold_never_exceeds_the_highest() -> None:
    capped = dispatcher(alpha="0.5", highest=2)
    capped.dispatch(first)
    assert capped.learn() is None
    assert (capped.threshold, capped.epoch) == (2, 0)


def test_the_threshold_never_goes_below_zero() -> None:
    # True messages cannot lead here: the tokens claim that pools have fewer than 0 tasks.
    floor = dispatcher(*(green(pool) for pool in "abcdefghij"), alpha="0.5", threshold=0)
    floor.dispatch(first)
    assert floor.learn() is None
    assert floor.threshold == 0


def test_without_a_rule_the_threshold_stays() -> None:
    tokens = dispatcher()
    tokens.dispatch(first)
    assert tokens.learn() is None


@pytest.mark.parametrize(("threshold", "highest"), [(-1, None), (3, 2)])
def test_impossible_thresholds_are_rejected(threshold: int, highest: int | None) -> None:
    with pytest.raises(InputError, match=f"not {threshold}"):
        Dispatcher(threshold, None, highest)


def test_membership_errors_name_the_pool() -> None:
    tokens = dispatcher()
    with pytest.raises(ValueError, match="'a'"):
        tokens.join("a")
    with pytest.raises(ValueError, match="'z'"):
        tokens.leave("z")
