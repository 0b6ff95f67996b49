"""What DNS says about a name: servers with weights, and how long that holds. No I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evenly.live.addresses import Address

_STEPS = 20  # of SRV weights: every weight has a threshold of its own, so there must be few


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The `servers` of a name with their weights, to be used for `ttl` seconds.

    `problem` is what went wrong, empty if nothing did. An answer with a problem may still have servers: those of
    the lookups that worked, and what the others returned last.
    """

    servers: Mapping[Address, float] = field(default_factory=dict)
    ttl: float = 0.0
    problem: str = ""


class SrvTarget(NamedTuple):
    """An SRV record."""

    priority: int
    weight: int
    port: int
    name: str


def preferred(targets: Iterable[SrvTarget]) -> list[SrvTarget]:
    """Return the targets of the most preferred priority, the lowest number, in a fixed order.

    A target of "." means that there is no such service (RFC 2782).
    """
    usable = sorted(target for target in targets if target.name != "." and target.port)
    return [target for target in usable if target.priority == usable[0].priority]


def srv_weights(targets: Iterable[SrvTarget]) -> dict[SrvTarget, float]:
    """Return the weights of targets relative to the largest, which is 1, in twentieths and at least one of them.

    Relative to the largest, because servers in trouble get a smaller weight: those of the others stay the same. A
    scale of its own is needed as well, since servers such as CoreDNS divide 100 by the number of targets.
    """
    found = list(targets)
    largest = max((target.weight for target in found), default=0)
    if largest == 0:
        return dict.fromkeys(found, 1.0)
    return {target: max(round(_STEPS * target.weight / largest), 1) / _STEPS for target in found}


def usable_host(host: str) -> str | None:
    """Return an IP address from DNS as `Address` spells it; None for one that no server can have.

    That is 0.0.0.0 and ::, which mean this machine, multicast and reserved addresses, and link-local IPv6
    addresses, which need the name of an interface.
    """
    number = ipaddress.ip_address(host)
    if isinstance(number, ipaddress.IPv6Address):
        number = number.ipv4_mapped or number
    reserved = isinstance(number, ipaddress.IPv4Address) and number.is_reserved  # 240.0.0.0/4 and 255.255.255.255
    local = isinstance(number, ipaddress.IPv6Address) and number.is_link_local
    if number.is_unspecified or number.is_multicast or reserved or local:
        return None
    return str(number)
