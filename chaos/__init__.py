"""Attacks and faults against a real gateway, with innocent sessions open: `python -m chaos`, or `make chaos`."""
