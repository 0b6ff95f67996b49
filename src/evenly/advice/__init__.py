"""Advice for finite systems, from theory where it applies and from simulation elsewhere."""

from evenly.lazy import front_door

_HOMES = {
    "evenly.advice.alpha": "recommend_alpha",
    "evenly.advice.recommendation": "Advice Candidate",
    "evenly.advice.tune_report": "TuneReport tune",
}

__getattr__, __dir__, __all__ = front_door(__name__, _HOMES)
