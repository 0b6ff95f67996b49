"""The log lines for the balancer's events: the only place where an event becomes text.

Operators search the log for these names, so they are a contract. Code reacts to the type of an event instead.
"""

from __future__ import annotations

from evenly.live.balancer.events import (
    AlphaChanged,
    BalancerEvent,
    PoolAdded,
    PoolGone,
    PoolStateChanged,
    ThresholdChanged,
)
from evenly.live.balancer.lifecycle import State
from evenly.live.log import Log

_STATE_NAMES = {
    State.SERVING: "pool serving",
    State.WARMING: "pool warming",
    State.FAILING: "pool failing",
    State.DRAINING: "pool draining",
    State.LEAVING: "pool leaving",
}


def log_event(log: Log, event: BalancerEvent) -> None:
    """Write an event to the log."""
    name, facts = describe(event)
    log.event(name, **facts)


def describe(event: BalancerEvent) -> tuple[str, dict[str, object]]:
    """Return the name of the event in the log, and its facts."""
    match event:
        case PoolAdded(pool=pool, endpoint=endpoint):
            return "pool added", {"pool": str(pool), "endpoint": str(endpoint)}
        case PoolStateChanged(pool=pool, before=before, state=state, sessions=sessions):
            return _STATE_NAMES[state], {"pool": str(pool), "before": before.value, "sessions": sessions}
        case PoolGone(pool=pool):
            return "pool gone", {"pool": str(pool)}
        case ThresholdChanged(before=before, threshold=threshold, changes=changes):
            return "threshold changed", {"before": before, "threshold": threshold, "changes": changes}
        case AlphaChanged(alpha=alpha):
            return "alpha changed", {"alpha": alpha}
    raise TypeError(f"There is no log line for {event!r}.")
