"""Everything about Envoy: its config, its process, its picks and its counts."""
