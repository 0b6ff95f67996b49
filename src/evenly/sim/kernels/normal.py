"""The quantile function of the standard normal law, to 16 digits (M. J. Wichura, Algorithm AS 241, 1988)."""

from __future__ import annotations

import math

import numpy as np

from evenly.sim.kernels.jit import kernel
from evenly.sim.kernels.rng import Floats

# Numerators and denominators, from the highest power down, in the center, in the tails and far out.
_CENTER = np.array([
    [2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608],
    [5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0],
])  # fmt: skip
_TAIL = np.array([
    [7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734],
    [1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0],
])  # fmt: skip
_FAR = np.array([
    [2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772],
    [2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0],
])  # fmt: skip


@kernel
def _ratio(table: Floats, x: float) -> float:
    above, below = table[0, 0], table[1, 0]
    for power in range(1, 8):
        above = above * x + table[0, power]
        below = below * x + table[1, power]
    return float(above / below)


@kernel
def normal_quantile(chance: float) -> float:
    """Return x such that a standard normal is below it with this probability, strictly between 0 and 1."""
    center = chance - 0.5
    if abs(center) <= 0.425:
        return center * _ratio(_CENTER, 0.180625 - center * center)
    far = math.sqrt(-math.log(min(chance, 1.0 - chance)))
    size = _ratio(_TAIL, far - 1.6) if far <= 5.0 else _ratio(_FAR, far - 5.0)
    return math.copysign(size, center)
