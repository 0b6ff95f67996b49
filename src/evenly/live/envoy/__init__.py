"""Envoy: its config, and its process."""
