"""Diffusion limits: fluctuations around the balanced state, of order 1 / sqrt(pools).

`fractional` is the limit at a load that is not a whole number. `whole` is the reflected limit at a whole load, and
`whole_law` its stationary distribution. `limit` picks the one that holds for a load, and returns a `result`.
"""

from evenly.theory.diffusion.fractional import OrnsteinUhlenbeck, ornstein_uhlenbeck
from evenly.theory.diffusion.limit import predict_diffusion
from evenly.theory.diffusion.result import DiffusionLimit
from evenly.theory.diffusion.whole import reflected
from evenly.theory.diffusion.whole_law import stationary_summary

__all__ = [
    "DiffusionLimit",
    "OrnsteinUhlenbeck",
    "ornstein_uhlenbeck",
    "predict_diffusion",
    "reflected",
    "stationary_summary",
]
