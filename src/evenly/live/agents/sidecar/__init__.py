"""`evenly agent`: an agent for servers in any language, as a process of its own with a loopback HTTP API."""
