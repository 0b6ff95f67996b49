"""Pools and dispatcher where messages take time: the state of each pool, and the dispatcher's view of it.

The dispatcher ranks the pools by estimate. Those with a token are the first ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined
from evenly.sim.kernels.ledger import Record

IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

NETWORK = np.dtype(
    [
        ("delay", np.float64),
        ("exponential", np.int64),
        ("interval", np.float64),  # between two reports of a pool
        ("next_report", np.float64),  # when the next pool reports
        ("flying", np.int64),  # messages and tasks on the way
        ("head", np.int64),  # place of the next one
        ("serial", np.int64),
        ("lowest", np.int64),  # estimate of any pool
        ("highest", np.int64),  # estimate, number of tasks or threshold so far
        ("polls", np.int64),  # under way
        ("dispatched", np.int64),  # given sessions that have begun their way, or were open at time 0
        ("begun", np.int64),  # given sessions that have reached their pools
        # counters
        ("reports", np.int64),
        ("refusals", np.int64),  # of tasks that came to a full pool
    ]
)


class Parties(NamedTuple):
    """What each pool knows, and what the dispatcher knows about it."""

    tasks: IntArray
    owner: ShortArray  # the pool of each task
    arrived: IntArray  # tasks that have reached the pool
    sequence: IntArray  # reports sent
    threshold: IntArray  # the newest that reached the pool
    version: IntArray  # the number of the pick that brought it
    fall_at: IntArray  # by full pools: the threshold falls when at most this many others have it
    estimate: IntArray  # the dispatcher's
    picks: IntArray
    heard: IntArray  # sequence number of the newest report
    order: ShortArray  # pools by estimate, and the place of a pool among them
    place: ShortArray
    first: IntArray  # place of the first pool with this estimate or more
    polls: IntArray  # answers to come, best so far, which one, and the sampled pools; a row for each poll
    poll_task: IntArray  # the number of the task that each poll is for
    poll_free: IntArray  # rows that are not in use, as a stack


def new_parties(
    tasks: IntArray, owner: ShortArray, fall_at: IntArray, *, threshold: int, sampled: int, levels: int
) -> Parties:
    """Return pools that have joined one after the other, with these tasks, all of them known to the dispatcher."""
    pools = tasks.size
    numbers = np.arange(pools, dtype=np.int32)
    parties = Parties(
        tasks=tasks.astype(np.int64),
        owner=owner,
        arrived=np.zeros(pools, np.int64),
        sequence=np.zeros(pools, np.int64),
        threshold=np.full(pools, threshold, np.int64),
        version=np.zeros(pools, np.int64),
        fall_at=fall_at,
        estimate=tasks.astype(np.int64),
        picks=np.zeros(pools, np.int64),
        heard=np.zeros(pools, np.int64),
        order=np.argsort(tasks, kind="stable").astype(np.int32),
        place=numbers.copy(),
        first=np.searchsorted(np.sort(tasks), np.arange(levels)).astype(np.int64),
        polls=np.zeros((64 if sampled else 0, 3 + sampled), np.int64),
        poll_task=np.zeros(64 if sampled else 0, np.int64),
        poll_free=np.arange(64 if sampled else 0, dtype=np.int64)[::-1].copy(),
    )
    parties.place[parties.order] = numbers
    return parties


def grown_parties(parties: Parties, *, levels: int, tasks: int, polls: int, used: int) -> Parties:
    """Return the same parties with room for this many levels, tasks and polls, of which some are used."""
    rows = parties.polls.shape[0]
    more = max(polls - rows, 0)
    free = [np.arange(rows, rows + more)[::-1], parties.poll_free[: rows - used], np.zeros(used, np.int64)]
    return parties._replace(
        owner=np.concatenate([parties.owner, np.zeros(max(tasks - parties.owner.size, 0), np.int32)]),
        first=np.concatenate(
            [parties.first, np.full(max(levels - parties.first.size, 0), parties.tasks.size, np.int64)]
        ),
        polls=np.concatenate([parties.polls, np.zeros((more, parties.polls.shape[1]), np.int64)]),
        poll_task=np.concatenate([parties.poll_task, np.zeros(more, np.int64)]),
        poll_free=np.concatenate(free),
    )


@inlined
def rank_up(net: Record, parties: Parties, pool: int) -> None:
    """Move the pool one level up among the ranked."""
    order, place, first = parties.order, parties.place, parties.first
    level = parties.estimate[pool]
    parties.estimate[pool] = level + 1
    last = first[level + 1] - 1
    gap, other = place[pool], order[last]
    order[gap] = other
    place[other] = gap
    order[last] = pool
    place[pool] = last
    first[level + 1] = last
    if level == net.lowest and last == 0:
        net.lowest = level + 1
    net.highest = max(net.highest, level + 1)


@inlined
def rank_down(net: Record, parties: Parties, pool: int) -> None:
    """Move the pool one level down among the ranked."""
    order, place, first = parties.order, parties.place, parties.first
    level = parties.estimate[pool]
    parties.estimate[pool] = level - 1
    start = first[level]
    gap, other = place[pool], order[start]
    order[gap] = other
    place[other] = gap
    order[start] = pool
    place[pool] = start
    first[level] = start + 1
    net.lowest = min(net.lowest, level - 1)


@inlined
def rank(net: Record, parties: Parties, pool: int, estimate: int) -> None:
    """Move the pool to its new estimate."""
    while parties.estimate[pool] < estimate:
        rank_up(net, parties, pool)
    while parties.estimate[pool] > estimate:
        rank_down(net, parties, pool)
