"""What must come true once the faults end: estimates match reality, and the threshold moves to its optimum.

The bounds, counted from the end of the faults, where `delay` is the longest that a message takes from then on and
`longest_delay` the longest that one takes which was sent before:

- After `max(longest_delay, 2 * heartbeat) + heartbeat + 2 * delay`, every healthy pool knows the threshold in
  force, and its estimate is its tasks plus its open tickets. A request that was late may move the threshold, and
  so may a dispatcher that has started again, two heartbeats later. Then it takes one heartbeat, which covers all
  sessions, and the reply, which has the threshold.
- `max(lease, silence) + heartbeat` later, nothing is left of the faults. No ticket is open: of a client that a
  crashed pool had taken, or whose arrival a failover forgot. No pool is a member but the healthy ones: a dead one
  may have become a member by a late message. Time passes for the dispatcher when it receives something, hence the
  heartbeat.

A pool that hears nothing of the dispatcher may be left. It stays a member, and does not hold up the rule.

Then sessions are replaced one by one, one heartbeat apart: a pool may know an older threshold, so that only its
heartbeat tells of a session that ended. With `pools * k + pools // 2`
sessions and an alpha of `(pools - 1.5) / pools`, threshold k is the only one that stays: right before an arrival
at most one pool has fewer than k tasks, so that at least `pools - 1` have k or more; and at least two have k or
less. With two pools, that takes `2 * k` sessions.
"""

from tests.faults.network.nodes import PoolNode
from tests.faults.network.setup import HEARTBEAT
from tests.faults.network.system import System
from tests.faults.network.world import require

_STILL = 2  # arrivals per pool for which the threshold must stay
_INSTANT = 1e-6


def check_liveness(system: System) -> None:
    """End the faults outside a healthy core, and check what must come true."""
    healthy = _calm(system)
    setup, world = system.setup, system.world
    members = system.pools[: setup.core + setup.deaf]
    world.run_until(world.now + max(setup.longest_delay, 2 * HEARTBEAT) + HEARTBEAT + 2 * setup.delay + _INSTANT)
    _check_core(system, healthy)
    world.run_until(world.now + max(setup.lease, setup.silence) + HEARTBEAT + _INSTANT)
    _check_all(system, healthy, members)
    _settle(system, members)


def most_arrivals(pools: int, away: int) -> int:
    """Return the number of arrivals within which a threshold that is `away` from its optimum reaches it.

    Which session ends is random, so the bound leaves room: one schedule in a thousand needs more than 40 arrivals,
    and ten more are ever less likely.
    """
    return 100 + 40 * pools + 2 * away


def _calm(system: System) -> list[PoolNode]:
    """End the faults. Other pools than the core are dead, cut off or draining from now on, and some front-ends."""
    world, chance = system.world, system.world.random
    world.note("the faults end")
    system.crashes.stop()
    system.clients.stop()
    system.calm = True
    system.state.reachable = True
    for place, front in enumerate(system.fronts):
        front.calm()
        if place == 0:
            front.start()
    healthy, others = system.pools[: system.setup.core], system.pools[system.setup.core :]
    fates = {node.name: chance.choice(("dead", "cut off", "draining")) for node in others}
    if system.setup.deaf:
        fates[others[0].name] = "deaf"
    mute = [name for name, fate in fates.items() if fate == "cut off"]
    system.network.calm(mute, mute + [name for name, fate in fates.items() if fate == "deaf"])
    for node in others:
        fate = fates[node.name]
        world.fault(f"pool {fate} for good", "{}", node.name)
        if fate == "dead":
            node.crash()
        elif fate == "draining" and node.up:
            node.drain()
    for node in system.pools[: system.setup.core + system.setup.deaf]:
        if not node.up:
            node.start()
        elif node.draining:
            node.rejoin()
    return healthy


def _check_core(system: System, healthy: list[PoolNode]) -> None:
    """Check that the dispatcher and the healthy pools know of each other."""
    peer = system.state.peer
    for node in healthy:
        name = node.name
        require(name in peer.members, "{} is no member", name)
        _check_threshold(system, node)
        tickets = peer.open_tickets(name)
        estimate, right = peer.estimate(name), node.peer.tasks + len(tickets)
        require(estimate == right, "{} is estimated at {}, but has {}", name, estimate, right)
        for ticket in tickets:
            seen = system.clients.arrived.get((name, ticket)) == node.incarnation
            given = system.state.given.get((name, ticket), 0.0)
            require(not seen or system.state.last_failover >= given, "ticket {} of {} is still open", ticket, name)


def _check_all(system: System, healthy: list[PoolNode], members: list[PoolNode]) -> None:
    """Check that nothing is left of the faults. A deaf pool is a member, but cannot know the threshold."""
    peer = system.state.peer
    names, found = [node.name for node in members], sorted(map(str, peer.members))
    require(found == names, "the members {} should be {}", found, names)
    for node in healthy:
        _check_threshold(system, node)
    for node in members:
        estimate, tickets = peer.estimate(node.name), peer.open_tickets(node.name)
        require(estimate == node.peer.tasks, "{} at {} should be {}", node.name, estimate, node.peer.tasks)
        require(not tickets, "{} has ghosts: {}", node.name, tickets)


def _check_threshold(system: System, node: PoolNode) -> None:
    known, right = node.peer.threshold, system.state.peer.threshold
    require(known == right, "{} knows {}, not {}", node.name, known, right)


def _settle(system: System, members: list[PoolNode]) -> None:
    """Replace sessions one by one until the threshold is where it belongs, and check that it stays."""
    pools = len(members)
    least = 1 if pools == 2 else 0
    nearest = _sessions(members) // pools + system.world.random.randint(-2, 2)
    optimum = max(least, min(4, nearest))
    sessions = pools * optimum + (pools // 2 if pools > 2 else 0)
    while _sessions(members) > sessions:
        _end_one(system, members)
    while _sessions(members) < sessions:
        _begin_one(system)
    dispatcher = system.state.peer
    most = most_arrivals(pools, abs(dispatcher.threshold - optimum))
    for arrivals in range(most + 1):
        if dispatcher.threshold == optimum and all(0 <= node.peer.tasks - optimum <= 1 for node in members):
            break
        require(arrivals < most, "threshold {} should be {}", dispatcher.threshold, optimum)
        _replace_one(system, members)
    system.world.faults["arrivals to settle"] += arrivals
    for _ in range(_STILL * pools):
        _replace_one(system, members)
        require(dispatcher.threshold == optimum, "{} left optimum {}", dispatcher.threshold, optimum)


def _sessions(members: list[PoolNode]) -> int:
    return sum(node.peer.tasks for node in members)


def _replace_one(system: System, members: list[PoolNode]) -> None:
    _end_one(system, members)
    _begin_one(system)


def _end_one(system: System, members: list[PoolNode]) -> None:
    """End a session at random, and wait until the dispatcher may know."""
    open_sessions = [(node, session) for node in members for session in node.book.sessions]
    node, session = system.world.random.choice(open_sessions)
    node.end(session, node.incarnation)
    system.world.run_until(system.world.now + HEARTBEAT + system.setup.delay + _INSTANT)


def _begin_one(system: System) -> None:
    """Let a client come, and wait for its request and the answer."""
    system.clients.come_promptly()
    system.world.run_until(system.world.now + 2 * system.setup.delay + _INSTANT)
