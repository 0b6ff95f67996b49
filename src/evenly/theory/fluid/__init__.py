"""Fluid limits: what the occupancy does over time in the large-system limit.

`path` has the result and the entry point, `solver` integrates mode by mode (`modes`), `crossing` and `integration`
are its tools, `mass` has the closed forms for total and tail masses, `inputs` the checks.
"""

from evenly.theory.fluid.path import FluidPath, fluid

__all__ = ["FluidPath", "fluid"]
