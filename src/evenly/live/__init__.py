"""The live balancer: the policy of `evenly.core` for real servers, behind Envoy or reached directly by clients."""
