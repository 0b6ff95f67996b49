"""The balancer: which pool gets a session. Decisions only, no I/O; time and randomness are arguments."""
