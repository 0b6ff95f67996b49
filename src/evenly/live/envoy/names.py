"""Names on which Envoy's config and the picker must agree."""

CLUSTER = "pools"
ANNOUNCEMENT = "x-evenly-envoy"  # header of Envoy's calls: where its admin port is
NAMESPACE = "envoy.lb"  # of the metadata in which picks travel
PICKED = "x-gateway-destination-endpoint"
SERVED = "x-gateway-destination-endpoint-served"
