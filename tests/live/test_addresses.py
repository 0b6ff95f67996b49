"""Addresses: what is read is what is written, and everything else is refused in one sentence."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenly.errors import InputError
from evenly.live.addresses import Address, parse_address, resolve

# An IPv4-mapped IPv6 address has one spelling, that of the IPv4 address.
_HOSTS = (
    st.ip_addresses().map(lambda number: str(getattr(number, "ipv4_mapped", None) or number))
    | st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z]{2,9}){0,3}", fullmatch=True)
    | st.just("localhost")
)


@given(host=_HOSTS, port=st.integers(0, 65535))
def test_an_address_is_read_back_as_it_was_written(host: str, port: int) -> None:
    address = Address(host, port)

    assert parse_address(str(address)) == address


def test_an_ipv6_host_wears_brackets_and_has_one_spelling() -> None:
    assert str(Address("::1", 80)) == "[::1]:80"
    assert parse_address("[0:0:0:0:0:0:0:1]:80") == parse_address("[::1]:80") == Address("::1", 80)


@pytest.mark.parametrize("text", ["[::ffff:0:0]:80", "[::ffff:0.0.0.0]:80", "0.0.0.0:80"])
def test_an_ipv4_mapped_address_has_one_spelling(text: str) -> None:
    assert parse_address(text) == Address("0.0.0.0", 80)
    assert str(parse_address(text)) == "0.0.0.0:80"


@pytest.mark.parametrize(
    "text",
    [
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
        "host:\u0668\u0660",
        "x" * 300 + ":80",
    ],
)
def test_what_is_no_address_is_refused_and_named(text: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_address(text)

    assert repr(text) in str(refused.value)
    assert str(refused.value).endswith(".")


@given(text=st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = parse_address(text)
    except InputError:
        return
    assert 0 <= address.port <= 65535
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert Address(host, 80).loopback


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "2001:db8::1", "example.org", "localhost.example.org"]
)
def test_what_others_can_reach_is_not_loopback(host: str) -> None:
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


def test_a_number_is_its_own_answer_and_an_unknown_name_is_refused() -> None:
    assert resolve(Address("127.0.0.1", 80)) == Address("127.0.0.1", 80)
    assert resolve(Address("::1", 80)) == Address("::1", 80)
    with pytest.raises(InputError, match=r"nobody\.invalid:80 is not known"):
        resolve(Address("nobody.invalid", 80))
