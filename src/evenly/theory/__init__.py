"""Predictions by mathematics: limits of many pools, and the exact law of few. Never imports `sim`."""
