"""All the claims, by the paper's sections."""

from __future__ import annotations

from dataclasses import dataclass

from evenly.paper import (
    claims_demand,
    claims_diffusion,
    claims_fluid,
    claims_learning,
    claims_model,
    claims_settling,
    claims_shares,
    claims_threshold,
)
from evenly.paper.claim import Claim


@dataclass(frozen=True)
class Section:
    """Claims that belong together."""

    title: str
    place: str
    claims: tuple[Claim, ...]


SECTIONS = (
    Section("The model and the tokens", "Sec. 2", claims_model.CLAIMS),
    Section(
        "The fluid limit and the thresholds that are optimal",
        "Secs 3.1 and 3.2",
        claims_fluid.CLAIMS,
    ),
    Section("On the diffusion scale", "Secs 3.3 and 3.4", claims_diffusion.CLAIMS),
    Section("Learning the threshold", "Secs 4.1 to 4.4", claims_learning.CLAIMS),
    Section("Where and how soon the threshold settles", "Secs 4.5 and 4.6", claims_settling.CLAIMS),
    Section("The threshold of finite systems", "Sec. 5.1", claims_threshold.CLAIMS),
    Section("How resources are shared", "Sec. 5.2", claims_shares.CLAIMS),
    Section("Demand that varies", "Sec. 5.3", claims_demand.CLAIMS),
)
CLAIMS = tuple(claim for section in SECTIONS for claim in section.claims)
