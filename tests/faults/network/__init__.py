"""The protocol's real state machines in a simulated bad network, with crashes, in virtual time.

`run_schedule(seed)` draws a system and a schedule of faults from one integer, drives `evenly.core.protocol`
through it and checks after every event what must hold. The same seed repeats the same schedule exactly.

It must not contain a wall clock, a socket, or a model of the protocol: what runs is what is shipped.
"""

from tests.faults.network.run import MODES, Outcome, explain, run_schedule
from tests.faults.network.system import Peers
from tests.faults.network.world import ViolationError

__all__ = ["MODES", "Outcome", "Peers", "ViolationError", "explain", "run_schedule"]
