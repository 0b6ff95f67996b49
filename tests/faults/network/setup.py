"""What a schedule consists of, drawn from its seed: the system, its settings, and how bad things get."""

import random
from dataclasses import dataclass

HEARTBEAT = 1.0  # the unit of time: how often a pool sends its state


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The parameters of one schedule. Times are in heartbeat intervals, rates per heartbeat interval.

    `embedded` means that the one front-end holds the dispatcher's state and loses it in a crash. Otherwise the
    state is in a store that `fronts` stateless front-ends share. The first `core` pools are healthy in the end,
    and the next one, if `deaf`, sends but receives nothing.
    """

    pools: int
    core: int
    deaf: bool
    fronts: int
    embedded: bool
    alpha: str
    threshold: int
    capacity: int | None
    lease: float
    silence: float
    memory: float
    delay: float  # of a message when all is well, at most
    longest_delay: float  # of a message that is late
    loss: float
    duplication: float
    lateness: float
    crash_after_write: float
    pool_crashes: float
    front_crashes: float
    store_crashes: float
    failovers: float
    partitions: float
    drains: float
    duration: float  # until the faults end
    clients: float
    session: float  # mean length
    no_shows: float
    late_clients: float
    second_asks: float  # requests that are sent twice, in a hurry
    known_capacity: bool  # the dispatcher knows the capacity, and avoids full pools
    operator_drains: float
    second_tries: float  # clients that were turned away and ask for another pool


def draw_setup(chance: random.Random, *, liveness: bool) -> Setup:
    """Draw a system and the intensity of every kind of fault; each kind is absent now and then."""
    pools = chance.randint(2, 8)
    core = pools if not liveness else chance.randint(2, pools)
    deaf = core < pools and chance.random() < 0.15
    embedded = chance.random() < 0.3
    capacity = None if liveness or chance.random() < 0.6 else chance.randint(2, 5)
    # In liveness mode, the alpha with which the threshold settles for certain; see `liveness.py`.
    members = core + deaf
    alpha = f"{(members - 1.5) / members:.3f}" if liveness else chance.choice(("0.3", "0.5", "0.8", "0.9", "0.95"))
    lease = chance.uniform(1.2, 4.0)

    def level(*levels: float) -> float:
        return chance.choice(levels)

    return Setup(
        pools=pools,
        core=core,
        deaf=deaf,
        fronts=1 if embedded else chance.randint(1, 3),
        embedded=embedded,
        alpha=alpha,
        threshold=chance.randint(0, 1 if capacity else 3),
        capacity=capacity,
        lease=lease,
        silence=chance.uniform(2.2, 4.0),
        memory=lease * level(0.5, 1.5, 3.0),
        delay=chance.choice((0.001, 0.01, 0.05)),
        longest_delay=level(0.2, 1.0, 4.5),
        loss=level(0.0, 0.05, 0.2, 0.5),
        duplication=level(0.0, 0.1, 0.4),
        lateness=level(0.0, 0.1, 0.5),
        crash_after_write=level(0.0, 0.0, 0.05),
        pool_crashes=level(0.0, 0.1, 0.4),
        front_crashes=level(0.0, 0.1, 0.3),
        store_crashes=level(0.0, 0.1, 0.3),
        failovers=level(0.0, 0.2, 0.5),
        partitions=level(0.0, 0.1, 0.3),
        drains=level(0.0, 0.1, 0.3),
        duration=4.0 + 24.0 / pools,
        clients=0.6 * pools * level(0.5, 1.0, 2.0),
        session=level(1.0, 4.0, 12.0),
        no_shows=level(0.0, 0.1, 0.4),
        late_clients=level(0.0, 0.1, 0.4),
        second_asks=level(0.0, 0.2),
        known_capacity=chance.random() < 0.5,
        operator_drains=level(0.0, 0.1, 0.3),
        second_tries=level(0.0, 0.5, 1.0),
    )
