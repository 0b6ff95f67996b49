"""Many scenarios at once: a grid of points, run by processes here or on a Ray cluster, kept in a folder.

The names below load when first used; their types are in `__init__.pyi`.
"""

from evenly.lazy import front_door

_HOMES = {
    "evenly.sweeps.progress": "Status",
    "evenly.sweeps.result": "SweepResult",
    "evenly.sweeps.run": "sweep",
    "evenly.sweeps.values": "VALUES",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
