"""Clients that return to the pool that they had: whether the pool takes them back."""


def takes_back(tasks: int, enough: int, margin: int) -> bool:
    """Return True if a pool with `tasks` tasks takes back a client.

    `enough` is its threshold, or the tasks due to it under policies without a threshold. With a margin of 0, a
    pool takes back clients as long as it has a yellow token. The policy records such a task as one that arrived
    without a pick.
    """
    return tasks <= enough + margin
