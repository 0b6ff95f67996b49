"""Benchmarks of the simulator and of the live balancer, next to alternatives."""
