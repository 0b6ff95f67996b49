"""DNS lookups with dnspython: all addresses of a name, or of the targets of its SRV records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import dns.asyncresolver
import dns.exception
import dns.name
import dns.rdatatype
import dns.resolver

from evenly.live.addresses import Address
from evenly.live.discovery.answer import Answer, SrvTarget, preferred, srv_weights, usable_host
from evenly.live.pool_source import PoolSource

LIFETIME_S = 3.0  # for one lookup, over all nameservers
_TRY_S = 1.5  # for one nameserver
_AT_ONCE = 16  # lookups of SRV targets
_MAX_REASON = 300  # characters
_MISSING = "DNS lists no servers under this name"

_FAMILIES = ("A", "AAAA")


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of one lookup. After a failure, `records` are those of the last success."""

    records: Sequence[Any] = ()
    ttl: float = 0.0
    problem: str = ""
    extra: Sequence[Any] = ()  # of SRV records: the addresses that came with them


class Lookups:
    """The lookups of one source. `resolver` is the DNS server to ask, None for those of /etc/resolv.conf.

    Lookups use TCP, because Consul leaves servers out of answers over UDP without saying so. UDP is only used as
    long as TCP has never worked: a DNS server that restarts must not make servers disappear.
    """

    def __init__(self, source: PoolSource, resolver: Address | None, *, config: str = "/etc/resolv.conf") -> None:
        self._source = source
        self._server = resolver
        self._config = config
        self._tcp_works = False
        self._last: dict[tuple[str, str], _Found] = {}
        self._now: dict[tuple[str, str], _Found] = {}

    async def answer(self) -> Answer:
        """Look the source up."""
        try:
            resolver = self._resolver()
        except (dns.exception.DNSException, OSError) as error:
            return Answer(problem=_reason(error))
        self._now = {}
        find = self._srv if self._source.scheme.discovery == "srv" else self._addresses
        answer = await find(resolver)
        self._last = self._now  # targets that are no longer listed are forgotten
        return answer

    def _resolver(self) -> dns.asyncresolver.Resolver:
        """Return a resolver. A new one each time: /etc/resolv.conf may have changed."""
        resolver = dns.asyncresolver.Resolver(self._config, configure=self._server is None)
        if self._server is not None:
            resolver.port = self._server.port  # first: nameservers take it when they are set
            resolver.nameservers = [self._server.host]
        resolver.timeout = _TRY_S
        return resolver

    async def _addresses(self, resolver: dns.asyncresolver.Resolver) -> Answer:
        found = await asyncio.gather(*(self._find(resolver, self._source.name, kind) for kind in _FAMILIES))
        hosts = [record.address for each in found for record in each.records]
        servers = {Address(host, self._source.port): self._source.weight for host in _usable(hosts)}
        return _answer(servers, found)

    async def _srv(self, resolver: dns.asyncresolver.Resolver) -> Answer:
        found = await self._find(resolver, self._source.name, "SRV")
        targets = preferred(
            SrvTarget(record.priority, record.weight, record.port, record.target.to_text())
            for record in found.records
        )
        gate = asyncio.Semaphore(_AT_ONCE)
        names = list(dict.fromkeys(target.name for target in targets))
        parts = await asyncio.gather(*(self._target(resolver, gate, name, found.extra) for name in names))
        hosts = dict(zip(names, parts, strict=True))
        servers: dict[Address, float] = {}
        for target, weight in srv_weights(targets).items():
            for host in _one_family(hosts[target.name]):
                servers.setdefault(Address(host, target.port), round(self._source.weight * weight, 6))
        return _answer(servers, [found, *(each for part in parts for each in part)])

    async def _target(
        self, resolver: dns.asyncresolver.Resolver, gate: asyncio.Semaphore, name: str, extra: Iterable[Any]
    ) -> list[_Found]:
        """Return the addresses of an SRV target: those that came with the SRV records, else look them up."""
        with_it = [
            _Found(list(rrset), float(rrset.ttl))
            for rrset in extra
            if rrset.name.to_text() == name and dns.rdatatype.to_text(rrset.rdtype) in _FAMILIES
        ]
        if with_it:
            return with_it
        async with gate:
            return list(await asyncio.gather(*(self._find(resolver, name, kind) for kind in _FAMILIES)))

    async def _find(self, resolver: dns.asyncresolver.Resolver, name: str, kind: str) -> _Found:
        """Look one kind of record up. If that fails, return the records of the last success, and say so."""
        found = await self._ask(resolver, name, kind)
        if found.problem:
            last = self._last.get((name, kind), _Found())
            found = _Found(last.records, last.ttl, found.problem, last.extra)
        self._now[name, kind] = found
        return found

    async def _ask(self, resolver: dns.asyncresolver.Resolver, name: str, kind: str) -> _Found:
        problem = ""
        for tcp in (True,) if self._tcp_works else (True, False):
            try:
                got = await resolver.resolve(
                    name, kind, tcp=tcp, search=True, raise_on_no_answer=False, lifetime=LIFETIME_S
                )
            except dns.resolver.NXDOMAIN:
                self._tcp_works = self._tcp_works or tcp
                return _Found()
            except (dns.exception.DNSException, OSError, EOFError) as error:
                problem = problem or _reason(error)
            else:
                self._tcp_works = self._tcp_works or tcp
                ttl = float(got.chaining_result.minimum_ttl)
                records = list(got.rrset) if got.rrset is not None else []
                return _Found(records, ttl, extra=got.response.additional if kind == "SRV" else ())
        return _Found(problem=problem)


def _answer(servers: dict[Address, float], found: Sequence[_Found]) -> Answer:
    """Return the answer. No servers at all are a problem: those known must not all be dropped at once."""
    problem = next((each.problem for each in found if each.problem), "" if servers else _MISSING)
    ttl = min((each.ttl for each in found if each.records), default=0.0)
    return Answer(servers=servers, ttl=ttl, problem=problem)


def _usable(hosts: Iterable[str]) -> list[str]:
    """Return the hosts that a server can have, in a fixed order: DNS servers rotate answers."""
    return sorted({spelled for host in hosts if (spelled := usable_host(host)) is not None})


def _one_family(found: Sequence[_Found]) -> list[str]:
    """Return the addresses of an SRV target, IPv4 if there are any: one server must not count twice."""
    hosts = _usable(record.address for each in found for record in each.records)
    return [host for host in hosts if ":" not in host] or hosts


def _reason(error: Exception) -> str:
    if isinstance(error, dns.resolver.LifetimeTimeout):
        return f"no DNS server answered within {LIFETIME_S:g} s"
    if isinstance(error, dns.resolver.NoResolverConfiguration):
        return "/etc/resolv.conf names no DNS server"
    return (str(error) or repr(error))[:_MAX_REASON]
