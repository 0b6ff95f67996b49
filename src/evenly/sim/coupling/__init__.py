"""Several systems on one probability space: many sizes of one policy (`sizes`), and JSQ beside it (`jsq`)."""

from evenly.sim.coupling.jsq import CoupledRun, couple_with_jsq
from evenly.sim.coupling.sizes import simulate_sizes

__all__ = ["CoupledRun", "couple_with_jsq", "simulate_sizes"]
