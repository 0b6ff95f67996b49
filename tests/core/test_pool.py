"""The pool's role: which messages it sends, and when."""

import pytest

from evenly.core import Pool, TokenMessage
from evenly.errors import InputError
from tests.core.support import green, notice, yellow


@pytest.mark.parametrize(("tasks", "message"), [(0, green("a")), (1, green("a")), (2, None), (3, None), (4, None)])
def test_an_arrival_replaces_the_green_token_while_below(tasks: int, message: TokenMessage | None) -> None:
    pool = Pool("a", notice(3), tasks)
    assert pool.arrive() == message
    assert pool.tasks == tasks + 1


@pytest.mark.parametrize(
    ("tasks", "message"),
    [(1, None), (2, None), (3, green("a")), (4, yellow("a")), (5, None)],
)
def test_a_departure_announces_the_new_color(tasks: int, message: TokenMessage | None) -> None:
    pool = Pool("a", notice(3), tasks)
    assert pool.depart() == message
    assert pool.tasks == tasks - 1


def test_a_departure_at_threshold_zero_never_announces_green() -> None:
    assert Pool("a", notice(0), 1).depart() == yellow("a")


def test_no_departure_from_an_empty_pool() -> None:
    pool = Pool("a", notice(3))
    with pytest.raises(ValueError, match="'a'"):
        pool.depart()
    assert pool.tasks == 0


def test_no_arrival_at_a_full_pool() -> None:
    pool = Pool("a", notice(1), 2, capacity=2)
    assert pool.full
    with pytest.raises(ValueError, match="'a'"):
        pool.arrive()
    assert pool.tasks == 2
    pool.depart()
    assert not pool.full


@pytest.mark.parametrize(("tasks", "capacity"), [(-1, None), (3, 2), (0, 0), (0, -1)])
def test_impossible_pools_are_rejected(tasks: int, capacity: int | None) -> None:
    with pytest.raises(InputError):
        Pool("a", notice(1), tasks, capacity)


@pytest.mark.parametrize(("tasks", "messages"), [(2, ()), (3, ()), (4, (yellow("a", 1),)), (5, ()), (0, ())])
def test_on_a_rise_a_pool_at_the_new_threshold_sends_yellow(tasks: int, messages: tuple[TokenMessage]) -> None:
    assert Pool("a", notice(3), tasks).rethreshold(notice(4, 1)) == messages


@pytest.mark.parametrize(("tasks", "messages"), [(0, (green("a", 1),)), (1, (green("a", 1),)), (2, ()), (3, ())])
def test_on_a_fall_a_pool_below_the_new_threshold_sends_green(tasks: int, messages: tuple[TokenMessage]) -> None:
    assert Pool("a", notice(3), tasks).rethreshold(notice(2, 1)) == messages


def test_a_late_notice_is_ignored() -> None:
    pool = Pool("a", notice(3, 5), 2)
    assert pool.rethreshold(notice(4, 4)) == ()
    assert pool.rethreshold(notice(2, 5)) == ()
    assert pool.announce() == (green("a", 5), yellow("a", 5))


def test_thresholds_move_by_one() -> None:
    pool = Pool("a", notice(3), 2)
    with pytest.raises(InputError, match="from threshold 3 to 5"):
        pool.rethreshold(notice(5, 1))
    assert pool.rethreshold(notice(2, 1)) == ()  # the rejected notice changed nothing


@pytest.mark.parametrize(
    ("tasks", "messages"),
    [(0, (green("a"), yellow("a"))), (2, (green("a"), yellow("a"))), (3, (yellow("a"),)), (4, ())],
)
def test_announce_returns_every_token_due(tasks: int, messages: tuple[TokenMessage, ...]) -> None:
    assert Pool("a", notice(3), tasks).announce() == messages
