"""What the tests of discovery share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.live.discovery.dns_server import DnsServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DnsServer]:
    """A DNS server whose zone a module's tests change one after the other."""
    with DnsServer(tmp_path_factory.mktemp("dns")) as started:
        yield started
