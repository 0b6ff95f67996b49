"""The demo: embedded pools and traffic around a real Envoy and picker, and what is measured of them."""
