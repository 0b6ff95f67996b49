"""An occupancy over time as one long table."""

from __future__ import annotations

import numpy as np

from evenly.frames import Table
from evenly.theory.balance import FloatArray


def level_table(times: FloatArray, occupancy: FloatArray) -> Table:
    """Return the fraction of pools with at least as many tasks, one row per time and number of tasks."""
    rows, levels = occupancy.shape
    return Table(
        {
            "time": np.repeat(times, levels),
            "tasks": np.tile(np.arange(levels), rows),
            "occupancy": occupancy.ravel(),
        },
        units={
            "time": "mean task times",
            "tasks": "tasks in a pool",
            "occupancy": "fraction of pools with at least as many tasks",
        },
    )
