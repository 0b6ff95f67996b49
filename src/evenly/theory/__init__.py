"""Predictions by mathematics, without chance: `exact` solves small systems. Never imports `sim`."""
