"""The contract of policies."""
