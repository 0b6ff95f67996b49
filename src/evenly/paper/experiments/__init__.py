"""The runs behind the figures and the claims. Experiments produce data and do not judge it."""
