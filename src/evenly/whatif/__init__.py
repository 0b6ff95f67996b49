"""What the policies would have done with the sessions of a log."""

from evenly.lazy import front_door

_HOMES = {
    "evenly.whatif.outcome": "Outcome",
    "evenly.whatif.result": "WhatIf",
    "evenly.whatif.run": "replay_log",
    "evenly.whatif.sizing": "Sizing",
    "evenly.whatif.window": "Window",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
