"""What an Envoy's admin port says of its hosts: open requests, and whether health checks fail."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address

CLUSTER = "pools"
_PATH = f"/clusters?format=json&filter=^{CLUSTER}$"
_MOST_BYTES = 2**26
_MOST_ACTIVE = 10**7


class NotUnderstoodError(Exception):
    """An answer that is none of Envoy's."""


@dataclass(frozen=True, slots=True)
class Host:
    """A pool as one Envoy sees it."""

    active: int
    failing: bool


def ask(admin: Address, timeout: float) -> dict[Address, Host]:
    """Ask an Envoy; blocks. Raises OSError if it cannot be reached, NotUnderstoodError if it talks nonsense."""
    connection = http.client.HTTPConnection(admin.host, admin.port, timeout=timeout)
    try:
        connection.request("GET", _PATH)
        return read(connection.getresponse().read(_MOST_BYTES))
    except http.client.HTTPException as error:
        raise NotUnderstoodError(str(error)) from None
    finally:
        connection.close()


def read(answer: bytes) -> dict[Address, Host]:
    """The hosts of our cluster."""
    try:
        clusters = json.loads(answer).get("cluster_statuses", [])
        hosts = [
            host
            for cluster in clusters
            if cluster["name"] == CLUSTER
            for host in cluster.get("host_statuses", [])
            if "socket_address" in host["address"]
        ]
        return {_address(host): _host(host) for host in hosts}
    except (ValueError, KeyError, TypeError, AttributeError, InputError) as error:
        raise NotUnderstoodError(f"{type(error).__name__}: {error}") from None


def _address(host: dict[str, Any]) -> Address:
    found = host["address"]["socket_address"]
    return parse_address(str(Address(found["address"], found["port_value"])))


def _host(host: dict[str, Any]) -> Host:
    active = next((int(stat.get("value", 0)) for stat in host.get("stats", []) if stat["name"] == "rq_active"), 0)
    if not 0 <= active <= _MOST_ACTIVE:
        raise NotUnderstoodError(f"{active} open requests")
    health = host.get("health_status", {})
    failing = bool(health.get("failed_active_health_check") or health.get("failed_outlier_check"))
    return Host(active, failing)
