"""Names that Envoy's configuration and the picker must agree on."""

CLUSTER = "pools"
ANNOUNCEMENT = "x-evenly-envoy"  # header of Envoy's calls: its admin address
NAMESPACE = "envoy.lb"  # of the dynamic metadata that carries a pick
PICKED = "x-gateway-destination-endpoint"
SERVED = "x-gateway-destination-endpoint-served"
