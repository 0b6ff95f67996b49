"""Logs of sessions: read those of other programs, write our own."""

from evenly.lazy import front_door

_HOMES = {
    "evenly.logs.detect": "FORMATS",
    "evenly.logs.read": "read_log",
    "evenly.logs.session_log": "BadLine SessionLog",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
