"""The compiled loops, their random streams and records, and the compiler's settings."""
