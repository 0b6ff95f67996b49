"""Advice for finite systems, drawn from theory where it reaches and from simulation beyond."""
