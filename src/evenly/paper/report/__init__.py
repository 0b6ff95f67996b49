"""The HTML report: figures, claims with their verdicts, and links into the code."""
