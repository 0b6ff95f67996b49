"""The pool's role: which reports it sends, and when."""

import pytest

from evenly.core import Pool, Report
from tests.core.support import green, notice, report, yellow


@pytest.mark.parametrize("every_departure", [False, True])
@pytest.mark.parametrize(
    ("tasks", "sent"), [(0, green("a", 1)), (1, green("a", 2)), (2, None), (3, None), (4, None)]
)
def test_an_arrival_replaces_the_green_token_while_below(
    tasks: int, sent: Report | None, every_departure: bool
) -> None:
    pool = Pool("a", notice(3), tasks, every_departure=every_departure)
    assert pool.arrive() == sent
    assert pool.tasks == tasks + 1


@pytest.mark.parametrize(
    ("tasks", "sent"), [(1, None), (2, None), (3, green("a", 2)), (4, yellow("a", 3)), (5, None)]
)
def test_a_departure_announces_the_new_color(tasks: int, sent: Report | None) -> None:
    pool = Pool("a", notice(3), tasks)
    assert pool.depart() == sent
    assert pool.tasks == tasks - 1


@pytest.mark.parametrize(
    ("tasks", "sent"),
    [(1, green("a", 0)), (2, green("a", 1)), (3, green("a", 2)), (4, yellow("a", 3)), (5, None), (6, None)],
)
def test_every_departure_below_the_threshold_is_reported_on_request(tasks: int, sent: Report | None) -> None:
    assert Pool("a", notice(3), tasks, every_departure=True).depart() == sent


@pytest.mark.parametrize("every_departure", [False, True])
def test_a_departure_at_threshold_zero_never_announces_green(every_departure: bool) -> None:
    assert Pool("a", notice(0), 1, every_departure=every_departure).depart() == yellow("a", 0)


@pytest.mark.parametrize("threshold", range(5))
def test_every_departure_costs_at_most_two_messages_per_task(threshold: int) -> None:
    # A task causes at most one report when it arrives and one when it departs, at any level.
    for tasks in range(8):
        pool = Pool("a", notice(threshold), tasks, every_departure=True)
        sent = [pool.arrive(), pool.depart()]
        assert all(each is None or each.color is not None for each in sent)
        assert pool.tasks == tasks


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


@pytest.mark.parametrize(
    ("tasks", "answer"),
    [(0, report("a", 0, 1)), (3, report("a", 3, 1)), (4, yellow("a", 4, 1)), (5, report("a", 5, 1))],
)
def test_on_a_rise_a_pool_at_the_new_threshold_brings_yellow(tasks: int, answer: Report) -> None:
    pool = Pool("a", notice(3), tasks)
    assert pool.rethreshold(notice(4, 1)) == answer
    assert pool.notice == notice(4, 1)


@pytest.mark.parametrize(
    ("tasks", "answer"),
    [(0, green("a", 0, 1)), (1, green("a", 1, 1)), (2, report("a", 2, 1)), (3, report("a", 3, 1))],
)
def test_on_a_fall_a_pool_below_the_new_threshold_brings_green(tasks: int, answer: Report) -> None:
    assert Pool("a", notice(3), tasks).rethreshold(notice(2, 1)) == answer


@pytest.mark.parametrize(
    ("tasks", "answer"),
    [
        (3, report("a", 3, 7)),  # its token of before makes it green
        (4, green("a", 4, 7)),
        (5, green("a", 5, 7)),
        (6, yellow("a", 6, 7)),
        (7, report("a", 7, 7)),
    ],
)
def test_a_jump_up_is_answered_with_the_token_that_the_dispatcher_lacks(tasks: int, answer: Report) -> None:
    assert Pool("a", notice(3), tasks).rethreshold(notice(6, 7)) == answer


@pytest.mark.parametrize(
    ("tasks", "answer"), [(0, green("a", 0, 2)), (1, yellow("a", 1, 2)), (2, report("a", 2, 2))]
)
def test_a_jump_down_is_answered_with_the_token_that_the_dispatcher_lacks(tasks: int, answer: Report) -> None:
    assert Pool("a", notice(3), tasks).rethreshold(notice(1, 2)) == answer


@pytest.mark.parametrize(
    ("tasks", "answer"), [(2, green("a", 2, 2)), (3, yellow("a", 3, 2)), (4, report("a", 4, 2))]
)
def test_the_same_threshold_in_a_new_epoch_is_answered_with_the_token(tasks: int, answer: Report) -> None:
    assert Pool("a", notice(3), tasks).rethreshold(notice(3, 2)) == answer


def test_a_late_notice_is_ignored() -> None:
    pool = Pool("a", notice(3, 5), 2)
    assert pool.rethreshold(notice(4, 4)) is None
    assert pool.rethreshold(notice(2, 5)) is None
    assert pool.notice == notice(3, 5)
    assert pool.announce() == green("a", 2, 5)


@pytest.mark.parametrize(
    ("tasks", "sent"), [(0, green("a", 0)), (2, green("a", 2)), (3, yellow("a", 3)), (4, report("a", 4))]
)
def test_announce_reports_the_tasks_and_the_token_due(tasks: int, sent: Report) -> None:
    assert Pool("a", notice(3), tasks).announce() == sent
