"""The demo of a fleet: a store, two dispatchers, pools with agents, and sessions that go straight to the pools."""
