"""All claims, by the sections of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.paper.claims import (
    after_settling,
    balance,
    bound_terms,
    coupling,
    demand,
    diffusion,
    diffusion_optimality,
    diffusion_starts,
    equilibria,
    excursions,
    finite_settling,
    fluid,
    learning,
    learning_limit,
    masses,
    messages,
    model,
    optimality,
    settling,
    shares,
    steadiness,
    tails,
    tuning,
    uniqueness,
)
from evenly.paper.claims.claim import Claim


@dataclass(frozen=True)
class Section:
    """Claims that belong together."""

    title: str
    place: str
    claims: tuple[Claim, ...]


MODEL = Section("The model and the tokens", "Sec. 2", messages.CLAIMS + model.CLAIMS)
FLUID = Section(
    "The fluid limit and the optimal thresholds",
    "Secs 3.1 and 3.2",
    fluid.CLAIMS + masses.CLAIMS + tails.CLAIMS + balance.CLAIMS + uniqueness.CLAIMS + equilibria.CLAIMS,
)
DIFFUSION = Section(
    "On the diffusion scale",
    "Secs 3.3 and 3.4",
    diffusion.CLAIMS + diffusion_starts.CLAIMS + diffusion_optimality.CLAIMS + coupling.CLAIMS,
)
LEARNING = Section("Learning the threshold", "Secs 4 to 4.4", learning.CLAIMS + learning_limit.CLAIMS)
SETTLING = Section(
    "Where and how soon the threshold settles",
    "Secs 4.5 and 4.6",
    tuning.CLAIMS + optimality.CLAIMS + settling.CLAIMS + bound_terms.CLAIMS + after_settling.CLAIMS,
)
STEADINESS = Section(
    "The threshold of finite systems", "Sec. 5.1", steadiness.CLAIMS + excursions.CLAIMS + finite_settling.CLAIMS
)
SHARES = Section("How resources are shared", "Sec. 5.2", shares.CLAIMS)
DEMAND = Section("Varying demand", "Sec. 5.3", demand.CLAIMS)

SECTIONS = (MODEL, FLUID, DIFFUSION, LEARNING, SETTLING, STEADINESS, SHARES, DEMAND)
CLAIMS = tuple(claim for section in SECTIONS for claim in section.claims)
