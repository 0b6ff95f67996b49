"""Advice for finite systems, drawn from theory where it reaches and from simulation beyond."""

from evenly.advice.alpha import recommend_alpha
from evenly.advice.recommendation import Advice
from evenly.advice.tune_report import TuneReport, tune

__all__ = ["Advice", "TuneReport", "recommend_alpha", "tune"]
