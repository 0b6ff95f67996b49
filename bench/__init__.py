"""Benchmarks: how fast the simulator is, and against whom."""
