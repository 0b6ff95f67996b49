"""Arriving work: demand over time, service laws, arrival processes.

Described here with the standard library alone, sampled elsewhere.
"""

from evenly.workload.arrivals import ArrivalProcess, parse_arrivals, recorded_arrivals
from evenly.workload.demand import Phase, check_schedule, parse_schedule
from evenly.workload.service import ServiceLaw, empirical_law, parse_service

__all__ = [
    "ArrivalProcess",
    "Phase",
    "ServiceLaw",
    "check_schedule",
    "empirical_law",
    "parse_arrivals",
    "parse_schedule",
    "parse_service",
    "recorded_arrivals",
]
