"""The gateway: Envoy and the picker as child processes, and the supervisor that restarts them."""
