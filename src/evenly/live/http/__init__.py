"""HTTP with limits, for the ports that strangers may reach."""
