"""The log lines for the balancer's events: the only place where an event becomes text.

Operators search the log for these names, so they are a contract. Code reacts to the type of an event instead.
"""

from __future__ import annotations

from evenly.live.balancer.events import (
    AlphaChanged,
    BalancerEvent,
    PoolAdded,
    PoolFailed,
    PoolGone,
    PoolStateChanged,
    PoolWeightChanged,
    ThresholdChanged,
)
from evenly.live.balancer.lifecycle import State
from evenly.live.log import Log
from evenly.live.threshold_log import ThresholdLog

_STATE_NAMES = {
    State.SERVING: "pool serving",
    State.WARMING: "pool warming",
    State.CHECKING: "pool checking",
    State.FAILING: "pool failing",
    State.DRAINING: "pool draining",
    State.LEAVING: "pool leaving",
}


class EventLog:
    """Writes events to the log: one line each, except that changes of the threshold share lines."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._threshold = ThresholdLog(log)

    def write(self, event: BalancerEvent) -> None:
        """Write an event, or keep it for a later line."""
        if isinstance(event, ThresholdChanged):
            self._threshold.changed(before=event.before, threshold=event.threshold)
        else:
            name, facts = describe(event)
            if isinstance(event, PoolFailed):
                facts["since"] = None if event.seconds is None else self._log.moment(event.seconds)
            self._log.event(name, **facts)

    def catch_up(self) -> None:
        """Write what is due. To be called now and then."""
        self._threshold.catch_up()
        self._log.catch_up()

    def close(self) -> None:
        """Write what was kept for a later line."""
        self._threshold.close()


def describe(event: BalancerEvent) -> tuple[str, dict[str, object]]:
    """Return the name of the event in the log, and its facts."""
    match event:
        case PoolAdded(pool=pool, endpoint=endpoint, weight=weight, source=source):
            found = {"source": source} if source else {}
            return "pool added", {"pool": str(pool), "endpoint": str(endpoint), "weight": weight, **found}
        case PoolStateChanged(pool=pool, before=before, state=state, sessions=sessions):
            facts: dict[str, object] = {"pool": str(pool), "before": before.value, "sessions": sessions}
            if isinstance(event, PoolFailed):
                facts |= {"lost": event.lost, "reason": event.reason}
            return _STATE_NAMES[state], facts
        case PoolWeightChanged(pool=pool, before=before, weight=weight):
            return "pool weight changed", {"pool": str(pool), "before": before, "weight": weight}
        case PoolGone(pool=pool):
            return "pool gone", {"pool": str(pool)}
        case AlphaChanged(before=before, alpha=alpha, reason=reason):
            return "alpha changed", {"before": before, "alpha": alpha, "reason": reason}
    raise TypeError(f"There is no log line for {event!r}.")
