"""Open sessions by the time at which they end: a heap with four children per node.

Sessions that end at the same time do so in the order in which they began. A session is one number, its serial
number and its pool, so that this order costs one more comparison on a tie and nothing otherwise.

`bench/sessions.py` compares it with a heap with two children and with a calendar queue.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenly.sim.kernels.jit import inlined
from evenly.sim.kernels.levels import at

Floats = NDArray[np.float64]
IntArray = NDArray[np.int64]

POOL_BITS = 24  # enough for ten million pools; the serial number has the other 39 bits
POOL_MASK = (1 << POOL_BITS) - 1


@inlined
def push(due: Floats, sessions: IntArray, size: int, time: float, session: int) -> None:
    """Add a session to a heap of this size. Its serial number is the highest, so it goes last on a tie."""
    place = size
    while place > 0:
        parent = (place - 1) >> 2
        if due[at(parent)] <= time:
            break
        due[at(place)] = due[at(parent)]
        sessions[at(place)] = sessions[at(parent)]
        place = parent
    due[at(place)] = time
    sessions[at(place)] = session


@inlined
def pop(due: Floats, sessions: IntArray, size: int) -> None:
    """Remove the session that ends next, from a heap of this size."""
    last = size - 1
    time, session = due[at(last)], sessions[at(last)]
    place = 0
    child = 1
    while child < last:
        first, best = child, due[at(child)]
        for other in range(child + 1, min(child + 4, last)):
            ends = due[at(other)]
            if ends < best or (ends == best and sessions[at(other)] < sessions[at(first)]):
                first, best = other, ends
        if time < best or (time == best and session < sessions[at(first)]):
            break
        due[at(place)] = best
        sessions[at(place)] = sessions[at(first)]
        place = first
        child = 4 * place + 1
    due[at(place)] = time
    sessions[at(place)] = session
