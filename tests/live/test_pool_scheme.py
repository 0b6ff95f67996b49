"""The scheme of a pool: what it speaks, and how it is found."""

import pytest

from evenly.errors import InputError
from evenly.live.addresses import Address, WeightedPool, common_protocol, parse_pool
from evenly.live.pool_scheme import PoolScheme, split_scheme


def test_schemes() -> None:
    rows: list[tuple[str, PoolScheme, str, str]] = [
        ("a:80", PoolScheme(), "a:80", ""),
        ("http://a:80", PoolScheme(), "a:80", ""),
        ("https://a:443=4", PoolScheme("https"), "a:443=4", "https"),
        ("h2://[::1]:80", PoolScheme("h2"), "[::1]:80", "h2"),
        ("H2S://a:80", PoolScheme("h2s"), "a:80", "h2s"),
        ("dns://a:80", PoolScheme("http", "dns"), "a:80", "dns"),
        ("dns+http://a:80", PoolScheme("http", "dns"), "a:80", "dns"),
        ("srv+h2://_grpc._tcp.a", PoolScheme("h2", "srv"), "_grpc._tcp.a", "srv+h2"),
    ]
    for text, scheme, rest, spelled in rows:
        assert split_scheme(text) == (scheme, rest)
        assert str(scheme) == spelled


def test_unknown_schemes_are_refused() -> None:
    for text in ["ftp://a:1", "h2+dns://a:1", "+h2://a:1", "dns+://a:1", "://a:1", "dns+srv://a:1"]:
        with pytest.raises(InputError, match="scheme of a pool must be one of http, https, h2, h2s, dns or srv"):
            split_scheme(text)


def test_pools_have_a_scheme() -> None:
    pool = parse_pool("H2S://Pool-1:443=4")
    assert pool == WeightedPool(Address("pool-1", 443), 4.0, PoolScheme("h2s"))
    assert str(pool) == "h2s://pool-1:443=4"
    assert parse_pool("http://a:80") == parse_pool("a:80") == WeightedPool(Address("a", 80))


def test_pools_speak_one_protocol() -> None:
    assert common_protocol([]) == common_protocol([PoolScheme()]) == "http"
    assert common_protocol([PoolScheme("h2"), PoolScheme("h2", "dns")]) == "h2"
    with pytest.raises(InputError, match=r"^All pools must speak one protocol, not http and h2\.$"):
        common_protocol([PoolScheme(), PoolScheme("h2"), PoolScheme()])
