"""The pool's role: which reports it sends, and when."""

import pytest

from evenly.core import Pool, Report
from tests.core.support import green, report, yellow


@pytest.mark.parametrize("every_departure", [False, True])
@pytest.mark.parametrize(
    ("tasks", "sent"), [(0, green("a", 1)), (1, green("a", 2)), (2, None), (3, None), (4, None)]
)
def test_an_arrival_replaces_the_green_token_while_below(
    tasks: int, sent: Report | None, every_departure: bool
) -> None:
    pool = Pool("a", 3, tasks, every_departure=every_departure)
    assert pool.arrive() == sent
    assert pool.tasks == tasks + 1


@pytest.mark.parametrize(
    ("tasks", "sent"), [(1, None), (2, None), (3, green("a", 2)), (4, yellow("a", 3)), (5, None)]
)
def test_a_departure_announces_the_new_color(tasks: int, sent: Report | None) -> None:
    pool = Pool("a", 3, tasks)
    assert pool.depart() == sent
    assert pool.tasks == tasks - 1


@pytest.mark.parametrize(
    ("tasks", "sent"),
    [(1, green("a", 0)), (2, green("a", 1)), (3, green("a", 2)), (4, yellow("a", 3)), (5, None), (6, None)],
)
def test_every_departure_below_the_threshold_is_reported_on_request(tasks: int, sent: Report | None) -> None:
    assert Pool("a", 3, tasks, every_departure=True).depart() == sent


@pytest.mark.parametrize("every_departure", [False, True])
def test_a_departure_at_threshold_zero_never_announces_green(every_departure: bool) -> None:
    assert Pool("a", 0, 1, every_departure=every_departure).depart() == yellow("a", 0)


@pytest.mark.parametrize("threshold", range(5))
def test_every_departure_costs_at_most_two_messages_per_task(threshold: int) -> None:
    # A task causes at most one report when it arrives and one when it departs, at any level.
    for tasks in range(8):
        pool = Pool("a", threshold, tasks, every_departure=True)
        sent = [pool.arrive(), pool.depart()]
        assert all(each is None or each.color is not None for each in sent)
        assert pool.tasks == tasks


def test_no_departure_from_an_empty_pool() -> None:
    pool = Pool("a", 3)
    with pytest.raises(ValueError, match="'a'"):
        pool.depart()
    assert pool.tasks == 0


def test_no_arrival_at_a_full_pool() -> None:
    pool = Pool("a", 1, 2, capacity=2)
    assert pool.full
    with pytest.raises(ValueError, match="'a'"):
        pool.arrive()
    assert pool.tasks == 2
    pool.depart()
    assert not pool.full


@pytest.mark.parametrize(
    ("old", "new", "tasks", "sent"),
    [
        # On a rise by one, a pool at the new threshold brings yellow. On a fall, a pool below it brings green.
        *[(3, 4, 0, None), (3, 4, 3, None), (3, 4, 4, yellow("a", 4)), (3, 4, 5, None)],
        *[(3, 2, 0, green("a", 0)), (3, 2, 1, green("a", 1)), (3, 2, 2, None), (3, 2, 3, None)],
        # On a jump, an old token makes a pool green under a higher threshold, and all others bring theirs.
        *[(3, 6, 3, None), (3, 6, 4, green("a", 4)), (3, 6, 6, yellow("a", 6)), (3, 6, 7, None)],
        *[(3, 1, 0, green("a", 0)), (3, 1, 1, yellow("a", 1)), (3, 1, 2, None)],
    ],
)
def test_on_a_change_a_pool_brings_the_token_that_the_dispatcher_lacks(
    old: int, new: int, tasks: int, sent: Report | None
) -> None:
    pool = Pool("a", old, tasks)
    assert pool.rethreshold(new) == sent
    assert pool.threshold == new


def test_a_threshold_that_a_task_carries_is_adopted_without_a_word() -> None:
    pool = Pool("a", 3, 3)
    pool.adopt(5)
    assert pool.arrive() == green("a", 4)


@pytest.mark.parametrize(
    ("tasks", "sent"), [(0, green("a", 0)), (2, green("a", 2)), (3, yellow("a", 3)), (4, report("a", 4))]
)
def test_announce_reports_the_tasks_and_the_token_due(tasks: int, sent: Report) -> None:
    assert Pool("a", 3, tasks).announce() == sent
