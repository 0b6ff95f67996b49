"""Names to look up in the settings: `dns://NAME:PORT`, `srv://NAME`, and the DNS server to ask."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import InputError
from evenly.files import fingerprint
from evenly.live.addresses import Address, WeightedPool
from evenly.live.balancer.lifecycle import Event
from evenly.live.discovery.by_hand import Hold
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log
from evenly.live.picker.server import PickerServer
from evenly.live.picker.settings_watch import SettingsFile
from evenly.live.picker.state_file import load
from evenly.live.pool_scheme import PoolScheme
from evenly.live.pool_source import MAX_SOURCES, PoolSource, parse_pool_or_source
from evenly.live.settings import Settings, read_settings

LISTEN = {"listen": "127.0.0.1:80"}
ONE, TWO = Address("10.0.0.1", 80), Address("10.0.0.2", 80)


def test_sources() -> None:
    rows: list[tuple[str, str, int, float, str | None]] = [
        ("dns://web:80", "web", 80, 1.0, "dns://web:80"),
        ("DNS://Web.Shop.svc.cluster.local.:8080=4", "web.shop.svc.cluster.local.", 8080, 4.0, None),
        ("srv://_ws._tcp.web.service.consul", "_ws._tcp.web.service.consul", 0, 1.0, None),
        ("srv://web_1=0.5", "web_1", 0, 0.5, "srv://web_1=0.5"),
        ("dns+h2://web:80", "web", 80, 1.0, "dns+h2://web:80"),
    ]
    for text, name, port, weight, spelled in rows:
        found = parse_pool_or_source(text)
        assert isinstance(found, PoolSource)
        assert (found.name, found.port, found.weight) == (name, port, weight)
        assert str(found) == (spelled or text.lower())
        assert parse_pool_or_source(str(found)) == found
        assert "=" not in found.text


def test_bad_sources_get_one_sentence() -> None:
    for text, message in [
        ("dns://web", "dns://NAME:PORT with a port up to 65535, not 'dns://web'"),
        ("dns://web:0", "dns://NAME:PORT"),
        ("dns://web:65536", "dns://NAME:PORT"),
        ("dns://:80", "name in 'dns://:80' is not valid"),
        ("dns://a..b:80", "is not valid"),
        ("dns://a b:80", "is not valid"),
        ("dns://é:80", "is not valid"),
        (f"dns://{'a.' * 200}a:80", "is not valid"),
        ("dns://10.0.0.1:80", "need a name, not a number"),
        ("dns://[::1]:80", "dns://NAME:PORT"),
        ("dns://web:80=0", "weight of pool dns://web:80 must"),
        ("srv://web:80", "SRV records have ports"),
        ("srv://", "is not valid"),
        ("srv://.", "is not valid"),
        ("ftp://web:80", "scheme of a pool must be"),
    ]:
        with pytest.raises(InputError) as raised:
            read_settings({**LISTEN, "pool": [text]}, None)
        assert message in str(raised.value)


def test_bad_settings_get_one_sentence() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"pool": ["dns://web:80", "dns://WEB:80=2"]}, "Pool dns://web:80 is given twice"),
        ({"pool": [f"dns://web:{port + 1}" for port in range(MAX_SOURCES + 1)]}, "at most 100 names to look up"),
        ({"pool": ["dns://web:80=4"], "policy": "jsq"}, "weight"),
        ({"pool": ["dns://web:80"], "resolver": "dns.example:53"}, "an IP address and a port"),
        ({"pool": ["dns://web:80"], "resolver": "127.0.0.1:0"}, "from 1 to 65535"),
        ({"pool": ["dns://web:80"], "resolver": "127.0.0.1"}, "HOST:PORT"),
        ({"pool": ["dns://web:80"], "resolver": 53}, "must be text"),
    ]
    for more, message in rows:
        with pytest.raises(InputError) as raised:
            read_settings({**LISTEN, **more}, None)
        assert message in str(raised.value)


def test_settings_with_names_and_addresses(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('pool = ["a:1", "dns://web:80=4"]\nresolver = "[::1]:8600"\nlisten = "127.0.0.1:80"\n')
    settings = read_settings({}, file)
    assert settings.fixed == (WeightedPool(Address("a", 1)),)
    assert settings.sources == (PoolSource("web", 80, 4.0, PoolScheme("http", "dns")),)
    assert settings.resolver == Address("::1", 8600)
    again = Settings.model_validate_json(settings.model_dump_json())
    assert again == settings


def picker(state: Path, *pools: str) -> PickerServer:
    given = {**LISTEN, "pool": list(pools), "policy": "jsq"}
    return PickerServer(
        read_settings(given, None),
        given=given,
        config=None,
        state=state,
        restored=load(state),
        log=Log(None),
        files=1000,
        seen=None,
    )


def test_a_restarted_picker_knows_the_last_answers_and_what_was_done_by_hand(tmp_path: Path) -> None:
    state = tmp_path / "state.json"

    async def run() -> None:
        first = picker(state, "dns://web:80", "dns://api:80")
        web, api = first.discovery.followed
        web.servers, api.servers = {ONE: 1.0}, {TWO: 1.0}
        first.discovery.reconcile()
        first.balancer.drain(ONE)
        first.discovery.note(ONE, Event.DRAIN)
        first.discovery.note(Address("10.0.0.3", 80), Event.REMOVE)
        await first.close()

        second = picker(state, "dns://web:80", "dns://api:80")
        await second.discovery.wait_asked(0.0)
        assert [(pool.address, pool.source, pool.state.value) for pool in second.balancer.pools] == [
            (ONE, "dns://web:80", "draining"),
            (TWO, "dns://api:80", "checking"),
        ]
        assert [each.servers for each in second.discovery.followed] == [{ONE: 1.0}, {TWO: 1.0}]
        held = second.discovery.by_hand.holds
        assert [type(hold) for hold in held.values()] == [Hold, Hold]
        assert second.discovery.by_hand.removed(Address("10.0.0.3", 80))
        await second.close()

        third = picker(state, "dns://web:80")  # the other name is no longer configured
        assert {pool.address: pool.leaving for pool in third.balancer.pools} == {ONE: False, TWO: True}

    asyncio.run(run())


def test_a_settings_file_changes_the_names_while_the_picker_runs(tmp_path: Path) -> None:
    file = tmp_path / "picker.toml"
    file.write_text('pool = ["127.0.0.1:1", "dns://web:80"]\n')

    async def run() -> None:
        service = picker(tmp_path / "state.json", "127.0.0.1:1", "dns://web:80")
        [web] = service.discovery.followed
        web.servers = {ONE: 1.0}
        service.discovery.reconcile()
        watch = SettingsFile(file, fingerprint(file), {**LISTEN, "policy": "jsq"}, service.balancer, Log(None))
        file.write_text('pool = ["127.0.0.1:1", "srv://api"]\n')
        settings, whole = await watch._changed(service._settings)
        service._use(settings)
        assert whole
        assert [each.source.text for each in service.discovery.followed] == ["srv://api"]
        assert [str(pool.address) for pool in service.balancer.pools] == ["127.0.0.1:1"]

    asyncio.run(run())


def test_the_picker_knows_where_its_gateway_takes_clients(tmp_path: Path) -> None:
    folder = GatewayFolder(tmp_path)
    assert folder.listen is None
    folder.set_listen(Address("::", 8080))
    assert folder.listen == Address("::", 8080)
