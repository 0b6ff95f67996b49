"""Addresses of pools, Envoys and ports to listen on: HOST:PORT, with [] around an IPv6 host. Weights of pools."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.pool_scheme import PoolScheme, split_scheme
from evenly.workload.pools import MAX_CLASSES, checked_size

MAX_POOLS = 10_000
MAX_WEIGHTS = MAX_CLASSES  # different ones: each has a threshold of its own, and a step looks at all of them
_FORM = re.compile(r"(?:\[(?P<ipv6>[^\[\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]{1,5})")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")  # underscores occur in names of containers
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # with a last label like this, resolvers read the host as IPv4
_BARE_IPV6 = re.compile(r"[0-9a-f.]*:[0-9a-f.]*:[0-9a-f:.]*", re.IGNORECASE | re.ASCII)
_WEIGHT = re.compile(r"[0-9.eE+-]{1,40}")
_MAX_HOST = 253


class Address(NamedTuple):
    """A host, as a name or an IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            number = ipaddress.ip_address(self.host)
        except ValueError:
            return self.host.lower() == "localhost"
        mapped = number.ipv4_mapped if isinstance(number, ipaddress.IPv6Address) else None
        return (mapped or number).is_loopback


def is_ip(host: str) -> bool:
    """Return whether the host is an IP address and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class WeightedPool(NamedTuple):
    """A pool as it is configured: [SCHEME://]HOST:PORT[=WEIGHT]."""

    address: Address
    weight: float = 1.0
    scheme: PoolScheme = PoolScheme()

    def __str__(self) -> str:
        scheme = f"{self.scheme}://" if str(self.scheme) else ""
        weight = "" if self.weight == 1 else f"={weight_text(self.weight)}"
        return f"{scheme}{self.address}{weight}"


def parse_pool(text: str) -> WeightedPool:
    """Read [SCHEME://]HOST:PORT[=WEIGHT]."""
    scheme, rest = split_scheme(text)
    if scheme.discovery:
        raise InputError(f"This pool must have an address, HOST:PORT, not {shown(text)}.")
    address, equals, weight = rest.partition("=")
    pool = parse_address(address)
    if not equals:
        return WeightedPool(pool, scheme=scheme)
    return WeightedPool(pool, parse_weight(weight, f"The weight of pool {pool}"), scheme)


def parse_weight(text: str, name: str) -> float:
    """Read the weight of a pool; `name` begins the sentence about a bad one."""
    try:
        number: object = float(text) if _WEIGHT.fullmatch(text) else text
    except ValueError:
        number = text
    return checked_weight(number, name)


def checked_weight(weight: object, name: str = "The weight of a pool") -> float:
    """Return the weight as a plain float, or raise InputError unless a pool can have it."""
    return checked_size(weight, name)


def weight_text(weight: float) -> str:
    """Return a weight as people write it: 4, not 4.0."""
    return repr(weight).removesuffix(".0")


@lru_cache(maxsize=2 * MAX_POOLS)  # every session names the pool that serves it
def parse_address(text: str, *, listening: bool = False) -> Address:
    """Read HOST:PORT. Every host has one spelling: names in lower case, IPv4-mapped addresses as IPv4.

    `listening` is for an address that we listen on, which may be all of this machine.
    """
    match = _FORM.fullmatch(text)
    if match is None and _BARE_IPV6.fullmatch(text):
        raise InputError(f"An IPv6 address needs brackets, as in [::1]:80, not {shown(text)}.")
    if match is None or int(match["port"]) > 65535:
        raise InputError(f"An address must be HOST:PORT with a port up to 65535, not {shown(text)}.")
    if match["host"] == "":
        port = match["port"]
        everywhere = f" only, or 0.0.0.0:{port} to listen on all of its addresses" if listening else ""
        raise InputError(f"{shown(text)} has no host: write 127.0.0.1:{port} for this machine{everywhere}.")
    host = _checked_host(match["host"], text) if match["ipv6"] is None else _checked_ipv6(match["ipv6"], text)
    return Address(host, int(match["port"]))


def _checked_ipv6(host: str, text: str) -> str:
    try:
        number = ipaddress.IPv6Address(host)
    except ValueError:
        number = None
    if number is None or number.scope_id is not None:
        zone = " without a zone" if "%" in host else ""
        raise InputError(f"An address in brackets must be an IPv6 address{zone}, not {shown(text)}.")
    return str(number.ipv4_mapped or number)


def _checked_host(host: str, text: str) -> str:
    """Return an IPv4 address or a host name. A host that looks like a number must be an IPv4 address.

    Resolvers read 127.1 and 0x7f.1 as IPv4 addresses too, but to a reader they are mistakes.
    """
    labels = host.lower().split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise InputError(
                f"The host of {shown(text)} is not a valid IPv4 address: use four numbers from 0 to 255."
            ) from None
    if not (host.isascii() and len(host) <= _MAX_HOST and all(map(_LABEL.fullmatch, labels))):
        hint = "" if host.isascii() else "; write other letters in the ASCII form, xn--..."
        raise InputError(
            f"The host of {shown(text)} is not a valid name: use letters, digits, hyphens and dots{hint}."
        )
    return host.lower()


def check_pools(pools: Sequence[Address]) -> None:
    """Reject pools without a port, pools given twice, and more than `MAX_POOLS` pools."""
    if len(pools) > MAX_POOLS:
        raise InputError(f"There can be at most {MAX_POOLS} pools, not {len(pools)}.")
    portless = next((pool for pool in pools if pool.port == 0), None)
    if portless is not None:
        raise InputError(f"The port of a pool must be from 1 to 65535, not 0 as in '{portless}'.")
    seen: set[Address] = set()
    for pool in pools:
        if pool in seen:
            raise InputError(f"Pool {pool} is given twice.")
        seen.add(pool)


def common_protocol(schemes: Iterable[PoolScheme]) -> str:
    """Return the protocol of all pools. Envoy speaks one to all servers of a cluster, so they must agree."""
    protocols = dict.fromkeys(scheme.protocol for scheme in schemes)
    if len(protocols) > 1:
        raise InputError(f"All pools must speak one protocol, not {' and '.join(protocols)}.")
    return next(iter(protocols), PoolScheme().protocol)


def check_weights(weights: Iterable[float]) -> None:
    """Reject more than `MAX_WEIGHTS` different weights."""
    different = len(set(weights))
    if different > MAX_WEIGHTS:
        raise InputError(f"Pools can have at most {MAX_WEIGHTS} different weights, not {different}: round them.")


def check_distinct(addresses: Mapping[str, Address]) -> None:
    """Reject two addresses that cannot both be listened on. The keys are the names of the options."""
    for (name, address), (other, second) in combinations(addresses.items(), 2):
        if address.port == second.port != 0 and _overlap(address, second):
            raise InputError(f"{name} and {other} must have different ports, not {address} and {second}.")


def check_no_loop(listen: Address, pools: Iterable[Address]) -> None:
    """Reject a pool at the address that listens for clients: requests would loop."""
    for pool in pools:
        if pool.port == listen.port and _overlap(listen, pool) and (pool.host == listen.host or pool.loopback):
            raise InputError(f"Pool {pool} is the address that Envoy listens on: requests would loop.")


def _overlap(one: Address, other: Address) -> bool:
    """Return whether two hosts are the same, or one of them means all addresses of this machine."""
    return one.host == other.host or any(_is_wildcard(each, of) for each, of in ((one, other), (other, one)))


def _is_wildcard(address: Address, of: Address) -> bool:
    """Return whether the address covers the other. Listening on :: accepts IPv4 as well."""
    return address.host == "::" or (address.host == "0.0.0.0" and ":" not in of.host)


def check_path(path: object) -> str:
    """Return a path that can stand in the first line of an HTTP request."""
    if not (isinstance(path, str) and re.fullmatch(r"/[!-~]{0,1000}", path)):
        raise InputError(
            f"health-path must start with / and be up to 1001 ASCII characters without spaces, not {shown(path)}."
        )
    return path


def resolve(address: Address) -> Address:
    """Look the host up. Return its IP address, IPv4 if there is one: Envoy reports hosts by IP address."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InputError(
            f"Cannot resolve the host of {address}: {(error.strerror or str(error)).lower()}."
        ) from None
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    number = ipaddress.ip_address(str(found[0][4][0]))
    mapped = number.ipv4_mapped if isinstance(number, ipaddress.IPv6Address) else None
    return Address(str(mapped or number), address.port)
