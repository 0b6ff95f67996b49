"""The alpha that a log's threshold learns with, unless one is given."""

from __future__ import annotations

from evenly.advice import recommend_alpha
from evenly.advice.alpha import MAX_DELAY, MAX_LOAD, MIN_LOAD
from evenly.workload.delay import Delay

_ALONE = 0.5  # with one server, every alpha does the same


def tuned_alpha(servers: int, peak: float, delay: Delay, mean_duration: float, seed: int) -> float:
    """Return the alpha to use for loads up to the peak, in sessions per server.

    The delay is in seconds here. One longer than a mean duration is taken for as long: beyond it, the threshold
    makes hardly any difference.
    """
    if servers == 1:
        return _ALONE
    relative = min(delay.mean / mean_duration, MAX_DELAY) if mean_duration > 0 else 0.0
    return recommend_alpha(
        pools=servers,
        load_max=min(max(peak, MIN_LOAD, 0.01), MAX_LOAD),
        seed=seed,
        delay=Delay(relative, delay.exponential),
    ).alpha
