"""Arriving work: demand over time. Described here with the standard library alone, sampled elsewhere."""

from evenly.workload.demand import Phase, check_schedule, parse_schedule

__all__ = ["Phase", "check_schedule", "parse_schedule"]
