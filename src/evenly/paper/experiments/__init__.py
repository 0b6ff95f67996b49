"""The runs and measurements behind the figures and the claims. Experiments make data and judge nothing."""
