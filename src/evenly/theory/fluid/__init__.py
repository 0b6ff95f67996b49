"""Fluid limits: the occupancy over time in the large-system limit.

`predict` has the entry point and `path` its result, `solver` integrates mode by mode (`modes`), `crossing` and
`integration` are its tools, `mass` has the closed forms for total and tail masses, `inputs` the checks.
"""

from evenly.theory.fluid.path import FluidPath
from evenly.theory.fluid.predict import predict_fluid

__all__ = ["FluidPath", "predict_fluid"]
