"""The compiled loops, and what they share: random streams, records, the compiler's settings."""
