"""Which pool gets a session: decisions only, no I/O; time and randomness are arguments."""
