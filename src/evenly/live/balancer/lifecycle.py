"""The life cycle of a pool: one table of stages and events.

What must be here: every stage a pool can be in, every event that changes it, and the word that `/state`,
`/metrics` and the log show for each stage. What must not: session counts, the policy, a clock, or reports of
changes.

Two parties decide about a pool independently: the operator drains and removes it, the data plane's health checks
fail it. So "draining" and "leaving" each exist with and without failing health checks, and a pool returns to the
right stage no matter which party acts first:

    STARTING --add--> CHECKING --reach--> WARMING --warmed_up--> SERVING
    CHECKING, WARMING, SERVING --fail--> FAILING --recover--> WARMING
    any of these --drain--> DRAINING*  --undrain--> CHECKING or FAILING
    any of these --remove--> LEAVING*  --emptied--> GONE    (LEAVING* --add--> CHECKING or FAILING)

A pool that becomes available always begins with CHECKING, and warms up first. If it was reached before, the
balancer sends `REACH` at once, and without slow start `WARMED_UP`: a stage in between is never seen. A pool gets
sessions while it is checked: there may be no data plane that tells how the checks end.

An event that the table does not list for a stage is a bug in evenly and raises `LifecycleError`. Requests of an
operator that cannot be met (an unknown pool, one that already exists) are rejected before they become an event.
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto


class State(StrEnum):
    """The word for a pool's stage in `/state`, `/metrics` and the log."""

    SERVING = "serving"
    WARMING = "warming"  # slow start: added, or back, a moment ago
    CHECKING = "checking"  # never reached so far
    FAILING = "failing"  # health checks fail
    DRAINING = "draining"  # the operator wants it to empty
    LEAVING = "leaving"  # removed; its last sessions are still open


class Stage(Enum):
    """A stage in the life of a pool: finer than `State`, since health checks continue while a pool empties."""

    STARTING = auto()  # created, not yet added
    CHECKING = auto()
    WARMING = auto()
    SERVING = auto()
    FAILING = auto()
    DRAINING = auto()
    DRAINING_FAILING = auto()
    LEAVING = auto()
    LEAVING_FAILING = auto()
    LEAVING_DRAINING = auto()  # drained, then removed: a restarted picker knows both
    LEAVING_DRAINING_FAILING = auto()
    GONE = auto()


class Event(Enum):
    """Something that happens to a pool."""

    ADD = auto()  # the operator adds it, or brings it back while it leaves
    REACH = auto()  # it passes a health check, or serves a session, for the first time
    WARMED_UP = auto()  # slow start is over
    FAIL = auto()  # health checks begin to fail
    RECOVER = auto()  # health checks pass again
    DRAIN = auto()
    UNDRAIN = auto()
    REMOVE = auto()
    EMPTIED = auto()  # the last session of a removed pool ended


TRANSITIONS: dict[Stage, dict[Event, Stage]] = {
    Stage.STARTING: {Event.ADD: Stage.CHECKING},
    Stage.CHECKING: {
        Event.REACH: Stage.WARMING,
        Event.FAIL: Stage.FAILING,
        Event.DRAIN: Stage.DRAINING,
        Event.REMOVE: Stage.LEAVING,
    },
    Stage.WARMING: {
        Event.WARMED_UP: Stage.SERVING,
        Event.FAIL: Stage.FAILING,
        Event.DRAIN: Stage.DRAINING,
        Event.REMOVE: Stage.LEAVING,
    },
    Stage.SERVING: {
        Event.FAIL: Stage.FAILING,
        Event.DRAIN: Stage.DRAINING,
        Event.REMOVE: Stage.LEAVING,
    },
    Stage.FAILING: {
        Event.RECOVER: Stage.WARMING,
        Event.DRAIN: Stage.DRAINING_FAILING,
        Event.REMOVE: Stage.LEAVING_FAILING,
    },
    Stage.DRAINING: {
        Event.FAIL: Stage.DRAINING_FAILING,
        Event.UNDRAIN: Stage.CHECKING,
        Event.REMOVE: Stage.LEAVING_DRAINING,
    },
    Stage.DRAINING_FAILING: {
        Event.RECOVER: Stage.DRAINING,
        Event.UNDRAIN: Stage.FAILING,
        Event.REMOVE: Stage.LEAVING_DRAINING_FAILING,
    },
    Stage.LEAVING: {
        Event.ADD: Stage.CHECKING,
        Event.FAIL: Stage.LEAVING_FAILING,
        Event.EMPTIED: Stage.GONE,
    },
    Stage.LEAVING_FAILING: {
        Event.ADD: Stage.FAILING,
        Event.RECOVER: Stage.LEAVING,
        Event.EMPTIED: Stage.GONE,
    },
    Stage.LEAVING_DRAINING: {
        Event.ADD: Stage.CHECKING,  # re-adding a pool cancels its drain
        Event.FAIL: Stage.LEAVING_DRAINING_FAILING,
        Event.EMPTIED: Stage.GONE,
    },
    Stage.LEAVING_DRAINING_FAILING: {
        Event.ADD: Stage.FAILING,
        Event.RECOVER: Stage.LEAVING_DRAINING,
        Event.EMPTIED: Stage.GONE,
    },
    Stage.GONE: {},
}

SHOWN: dict[Stage, State] = {
    Stage.STARTING: State.CHECKING,  # never seen: a pool is added as soon as it is created
    Stage.CHECKING: State.CHECKING,
    Stage.WARMING: State.WARMING,
    Stage.SERVING: State.SERVING,
    Stage.FAILING: State.FAILING,
    Stage.DRAINING: State.DRAINING,
    Stage.DRAINING_FAILING: State.DRAINING,
    Stage.LEAVING: State.LEAVING,
    Stage.LEAVING_FAILING: State.LEAVING,
    Stage.LEAVING_DRAINING: State.LEAVING,
    Stage.LEAVING_DRAINING_FAILING: State.LEAVING,
    Stage.GONE: State.LEAVING,  # seen once: in the response to the request that removed an idle pool
}

# Tuples, not sets: a few comparisons by identity are quicker than one hash of an enum member.
AVAILABLE = (Stage.SERVING, Stage.WARMING, Stage.CHECKING)
FAILING = (
    Stage.FAILING,
    Stage.DRAINING_FAILING,
    Stage.LEAVING_FAILING,
    Stage.LEAVING_DRAINING_FAILING,
)
DRAINING = (
    Stage.DRAINING,
    Stage.DRAINING_FAILING,
    Stage.LEAVING_DRAINING,
    Stage.LEAVING_DRAINING_FAILING,
)
LEAVING = (
    Stage.LEAVING,
    Stage.LEAVING_FAILING,
    Stage.LEAVING_DRAINING,
    Stage.LEAVING_DRAINING_FAILING,
    Stage.GONE,
)


class LifecycleError(Exception):
    """An event that cannot happen to a pool in its stage: a bug in evenly, never bad input."""


def next_stage(stage: Stage, event: Event, *, pool: object) -> Stage:
    """Return the stage after the event. Raises `LifecycleError`, which names the pool, if it is not listed."""
    try:
        return TRANSITIONS[stage][event]
    except KeyError:
        raise LifecycleError(f"Pool {pool} is {stage.name}; the event {event.name} cannot happen to it.") from None
