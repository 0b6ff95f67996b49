"""The demo: embedded pools and traffic around a real Envoy and picker, and the measurements of a run."""
