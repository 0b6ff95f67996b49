"""Addresses: what is written is read back, and everything else is rejected in one sentence."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.errors import InputError
from evenly.inputs import shown
from evenly.live.addresses import (
    MAX_POOLS,
    Address,
    check_distinct,
    check_no_loop,
    check_path,
    check_pools,
    parse_address,
    resolve,
)

# An IPv4-mapped IPv6 address has one spelling, that of the IPv4 address. The last part of a name begins with a
# letter: one that looks like a number would make the name an IPv4 address.
_HOSTS = (
    st.ip_addresses().map(lambda number: str(getattr(number, "ipv4_mapped", None) or number))
    | st.from_regex(r"([a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?\.){0,3}[a-z]{2,9}", fullmatch=True)
    | st.just("localhost")
)


@given(host=_HOSTS, port=st.integers(0, 65535))
def test_an_address_is_read_back_as_it_was_written(host: str, port: int) -> None:
    address = Address(host, port)

    assert parse_address(str(address)) == address


def test_an_ipv6_host_has_brackets_and_one_spelling() -> None:
    assert str(Address("::1", 80)) == "[::1]:80"
    assert parse_address("[0:0:0:0:0:0:0:1]:80") == parse_address("[::1]:80") == Address("::1", 80)


def test_a_name_has_one_spelling() -> None:
    assert parse_address("LocalHost:080") == parse_address("localhost:80")


def test_names_are_taken() -> None:
    for name in ["a", "a1.b2", "my_service", "xn--hst-sna.example", "3com.example", "x" * 63]:
        assert parse_address(f"{name}:80") == Address(name, 80)


def test_an_ipv4_mapped_address_has_one_spelling() -> None:
    for text in ["[::ffff:0:0]:80", "[::ffff:0.0.0.0]:80", "0.0.0.0:80"]:
        assert parse_address(text) == Address("0.0.0.0", 80)
        assert str(parse_address(text)) == "0.0.0.0:80"


def test_what_is_not_an_address_is_rejected_and_quoted() -> None:
    for text in [
        "",
        "host",
        "host:",
        ":80",
        "host:65536",
        "host:-1",
        "host:080000",
        "host:80 ",
        " host:80",
        "host:80\n",
        "ho st:80",
        "-host:80",
        "host.:80",
        "::1:80",
        "[::1]",
        "[::1]80",
        "[::g]:80",
        "[1.2.3.4]:80",
        "[:::]:80",
        "http://host:80",
        "host:80/path",
        "user@host:80",
        "h\u00f6st:80",
        "\u212aelvin:80",  # its first letter is a k in lower case
        "host:\u0668\u0660",
        "x" * 64 + ":80",
        ".".join(["x" * 50] * 5) + ":80",
        "x" * 300 + ":80",
        "a..b:80",
        ".a:80",
        "a-.b:80",
        "256.1.1.1:80",
        "1.2.3:80",
        "127.1:80",
        "2130706433:80",
        "0x7f000001:80",
        "0x:80",
        "010.0.0.1:80",
        "host.1:80",
        "[fe80::1%eth0]:80",
        "[fe80::1%]:80",
        "[]:80",
        "host\0:80",
    ]:
        with pytest.raises(InputError) as rejected:
            parse_address(text)

        assert shown(text) in str(rejected.value)
        assert str(rejected.value).endswith(".")
        assert "\n" not in str(rejected.value)


def test_a_rejection_says_what_is_allowed() -> None:
    for text, hint in [
        ("256.1.1.1:80", "four numbers from 0 to 255"),
        ("::1:80", "needs brackets, as in [::1]:80"),
        ("h\u00f6st:80", "xn--"),
        ("[fe80::1%eth0]:80", "IPv6 address without a zone"),
        ("a..b:80", "letters, digits, hyphens and dots"),
        ("host", "HOST:PORT"),
    ]:
        with pytest.raises(InputError) as rejected:
            parse_address(text)
        assert hint in str(rejected.value)


def test_pools_are_distinct_and_not_too_many() -> None:
    pools = [Address("10.0.0.1", 1 + number) for number in range(MAX_POOLS)]
    check_pools(pools)
    with pytest.raises(InputError, match=r"at most 10000 pools, not 10001\."):
        check_pools([*pools, Address("10.0.0.2", 1)])
    with pytest.raises(InputError, match=r"Pool 10\.0\.0\.1:1 is given twice\."):
        check_pools([*pools[1:], pools[0], pools[0]][-2:])
    with pytest.raises(InputError, match=r"from 1 to 65535, not 0 as in 'a:0'\."):
        check_pools([Address("a", 0)])


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("127.0.0.1:80", "127.0.0.1:80", True),
        ("127.0.0.1:80", "127.0.0.1:81", False),
        ("127.0.0.1:0", "127.0.0.1:0", False),
        ("0.0.0.0:80", "127.0.0.1:80", True),
        ("[::]:80", "127.0.0.1:80", True),
        ("0.0.0.0:80", "[::1]:80", False),
    ],
)
def test_two_addresses_to_listen_on_do_not_overlap(one: str, other: str, clash: bool) -> None:
    addresses = {"listen": parse_address(one), "admin": parse_address(other)}
    if not clash:
        check_distinct(addresses)
        return
    with pytest.raises(InputError) as rejected:
        check_distinct(addresses)
    assert str(rejected.value) == f"listen and admin must have different ports, not {one} and {other}."


@pytest.mark.parametrize(
    ("listen", "pool", "loop"),
    [
        ("10.0.0.1:80", "10.0.0.1:80", True),
        ("10.0.0.1:80", "10.0.0.1:81", False),
        ("0.0.0.0:80", "localhost:80", True),
        ("[::]:80", "127.0.0.1:80", True),
        ("0.0.0.0:80", "10.0.0.1:80", False),  # another machine
    ],
)
def test_a_pool_that_is_the_gateway_itself_is_rejected(listen: str, pool: str, loop: bool) -> None:
    if not loop:
        check_no_loop(parse_address(listen), [parse_address(pool)])
        return
    with pytest.raises(InputError, match="would loop"):
        check_no_loop(parse_address(listen), [parse_address(pool)])


def test_a_bad_health_path_is_rejected() -> None:
    rows: list[object] = ["", "up", "/a b", "/\n", "/\u00e4", "/" + "x" * 1001, 5, None, b"/up"]
    for path in rows:
        with pytest.raises(InputError, match="health-path must start with /"):
            check_path(path)
        assert check_path("/" + "x" * 1000)


@given(text=st.text(max_size=40))
def test_any_text_is_an_address_or_rejected(text: str) -> None:
    try:
        address = parse_address(text)
    except InputError:
        return
    assert 0 <= address.port <= 65535
    assert parse_address(str(address)) == address


def test_loopback_addresses() -> None:
    for host in ["127.0.0.1", "127.8.9.1", "::1", "localhost"]:
        assert Address(host, 80).loopback


def test_addresses_that_others_can_reach_are_not_loopback() -> None:
    for host in ["0.0.0.0", "::", "10.0.0.1", "2001:db8::1", "example.org", "localhost.example.org"]:
        assert not Address(host, 80).loopback


def test_a_name_is_resolved_to_ipv4_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 80, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 80)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: list(found))
    assert resolve(Address("a.example", 80)) == Address("192.0.2.1", 80)

    del found[1]
    assert resolve(Address("a.example", 80)) == Address("2001:db8::1", 80)


def test_an_ip_address_resolves_to_itself_and_an_unknown_name_is_rejected() -> None:
    assert resolve(Address("127.0.0.1", 80)) == Address("127.0.0.1", 80)
    assert resolve(Address("::1", 80)) == Address("::1", 80)
    with pytest.raises(InputError, match=r"Cannot resolve the host of missing\.invalid:80"):
        resolve(Address("missing.invalid", 80))
