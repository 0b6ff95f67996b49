"""Which `Host` headers name this machine: whole addresses, and nothing that only begins like one."""

from __future__ import annotations

import ipaddress
import re

from hypothesis import given
from hypothesis import strategies as st

from evenly.live.access import is_foreign, is_loopback_host

OWN = ["localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]"]
FOREIGN = [
    "",
    "[::1]evil.example",
    "[::1]evil.example:80",
    "[::1].evil.example",
    "[::1]@evil.example",
    "[::1]:80@evil.example",
    "[::1]:80evil",
    "[::1]:",
    "[::1",
    "::1",
    "[]",
    "[::1%lo]",
    "[[::1]]",
    "[localhost]",
    "[127.0.0.1]",
    "[::2]:80",
    "127.0.0.1:80@evil.example",
    "127.0.0.1:80:80",
    "127.0.0.1:",
    "127.0.0.1:99999",
    "127.0.0.1:-1",
    "127.0.0.1:+80",
    "127.0.0.1:8 0",
    "127.0.0.1.",
    "127.0.0.1.evil.example",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "0.0.0.0",
    "10.0.0.1",
    "localhost.",
    "localhost.evil.example",
    "evil.localhost",
    "localhost/",
    "localhost\\evil.example",
    "localhost#evil.example",
    "localhost,evil.example",
    "evil.example@localhost",
    " localhost",
    "localhost\t",
    "localhost\0",
    "\u217cocalhost",
    "\u0661\u0662\u0667.0.0.1",
    "localhost:" + "0" * 70_000,
]


def test_this_machine_is_named_with_and_without_a_port() -> None:
    for host in OWN:
        assert all(is_loopback_host(host + port) for port in ("", ":1", ":80", ":65535"))


def test_anything_else_is_foreign() -> None:
    for host in FOREIGN:
        assert not is_loopback_host(host)


def named(host: str) -> bool:
    """Say the same in another way: split off a port, then compare what is left as a whole."""
    name, port = re.fullmatch(r"(.*?)(?::([0-9]{1,5}))?", host, re.DOTALL).groups()  # type: ignore[union-attr]
    if port is not None and int(port) > 65535:
        return False
    if name.lower() == "localhost" or re.fullmatch(r"127(\.(0|[1-9][0-9]{0,2})){3}", name, re.ASCII):
        return all(int(part) < 256 for part in name.split(".")[1:])
    try:
        number = ipaddress.IPv6Address(re.fullmatch(r"\[([0-9a-fA-F:.]+)\]", name)[1])  # type: ignore[index]
    except (TypeError, ValueError):
        return False
    return (number.ipv4_mapped or number).is_loopback


PIECES = st.sampled_from([*OWN, *"[]:.@%/ ", "::1", "evil.example", "0", "80", ":80", "99999", "127", "\u0661"])


@given(st.lists(PIECES, max_size=5).map("".join) | st.text(max_size=20))
def test_only_whole_addresses_pass(host: str) -> None:
    assert is_loopback_host(host) == named(host)


def test_a_page_is_foreign_unless_it_comes_from_the_same_host() -> None:
    assert is_foreign("http://evil.example", "localhost:80")
    assert is_foreign("null", "localhost:80")
    assert not is_foreign("http://localhost:80", "localhost:80")
    assert not is_foreign(None, "localhost:80")
    assert not is_foreign("http://localhost:80", "localhost:80", "same-origin")
    for site in ("cross-site", "same-site", "", "anything"):
        assert is_foreign(None, "localhost:80", site)
