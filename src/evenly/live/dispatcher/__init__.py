"""The dispatcher: a process that places sessions over an HTTP API and keeps the connections of the agents."""
