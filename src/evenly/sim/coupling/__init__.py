"""Several systems on one probability space: many sizes of one policy (`sizes`), and JSQ beside it (`jsq`)."""

from evenly.sim.coupling.jsq import coupled_blocking
from evenly.sim.coupling.sizes import common_space

__all__ = ["common_space", "coupled_blocking"]
