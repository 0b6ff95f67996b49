"""The live balancer: the policy of `evenly.core` in front of real servers, with Envoy as the data plane."""
