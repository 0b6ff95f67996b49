"""Names, and one time, that Envoy's configuration and the picker must agree on."""

CLUSTER = "pools"
ONCE = "pools-once"  # the same pools, for requests that need a new connection
PICKER = "picker"  # the cluster, and the filter that asks it
ANNOUNCEMENT = "x-evenly-envoy"  # header of Envoy's calls: its admin address
NAMESPACE = "envoy.lb"  # of the dynamic metadata that carries a pick
PICKED = "x-gateway-destination-endpoint"
SERVED = "x-gateway-destination-endpoint-served"
SUBSET_NAMESPACE = "envoy.lb.subset_hint"  # of the metadata that says among which endpoints to pick
SUBSET = "x-gateway-destination-endpoint-subset"
MERGE_S = 0.05  # seconds within which Envoy tells its workers that a pool's health has changed
OPEN = {"evenly": "open"}  # endpoint metadata, in that namespace too, of a pool that may get new sessions
