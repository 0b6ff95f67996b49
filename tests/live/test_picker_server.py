"""The picker without its ports: what follows an event, and state files of earlier versions."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from evenly.errors import InputError
from evenly.live.addresses import Address, WeightedPool
from evenly.live.balancer.lifecycle import Stage
from evenly.live.envoy import eds
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log
from evenly.live.picker import server
from evenly.live.picker.background import StateSaver
from evenly.live.picker.event_log import EventLog
from evenly.live.picker.server import PickerServer
from evenly.live.picker.state_file import KnownPool, PickerState, load, save
from evenly.live.settings import OLD_KEYS, read_settings
from evenly.live.tls_settings import TlsSettings
from evenly.live.wire.protobuf import field
from evenly.live.wire.streams import Handler, Stream
from tests.live.processes import PATIENCE
from tests.live.sent_items import SentItems

ONE, TWO = Address("127.0.0.1", 9001), Address("127.0.0.1", 9002)

# As an earlier version wrote it.
STATE = (
    '{"settings":{"listen":"127.0.0.1:4000","pool":["127.0.0.1:9001","127.0.0.1:9002"],"policy":"threshold",'
    '"alpha":"0.85","load_max":null,"choices":null,"admin":"127.0.0.1:0","admin_token_file":null,'
    '"health_path":null,"slow_start":10.0,"drain":30.0},"pools":['
    '{"address":"127.0.0.1:9001","endpoint":"127.0.0.1:9001","draining":true,"leaving":false},'
    '{"address":"127.0.0.1:9002","endpoint":"127.0.0.1:9002","draining":true,"leaving":true},'
    '{"address":"127.0.0.1:9003","endpoint":"127.0.0.1:9003","draining":false,"leaving":true},'
    '{"address":"127.0.0.1:9004","endpoint":null,"draining":false,"leaving":false}],"alpha":"0.85"}'
)


def make_server(
    state: Path | None = None, restore: bool = False, files: int = 1000, gateway: GatewayFolder | None = None
) -> PickerServer:
    given: dict[str, Any] = {"listen": "127.0.0.1:4000", "pool": [str(ONE), str(TWO)], "alpha": "0.85"}
    return PickerServer(
        read_settings(given, None),
        given=given,
        config=None,
        state=state,
        restored=load(state) if restore and state is not None else None,
        log=Log(None),
        files=files,
        seen=None,
        gateway=gateway,
    )


async def responses_after(*changes: Callable[[PickerServer], object]) -> list[int]:
    """Return the number of discovery responses that an Envoy has received, at first and after each change."""
    made, connection = make_server(), SentItems()
    stream = Stream(connection, b"\0\0\0\1", 2**16)
    handler: Handler | None = made._router.route(stream, {b":path": eds.PATH})
    assert handler is not None
    await asyncio.sleep(0)  # the pools of the start
    handler.message(field(3, "pools"))
    counts = [len(connection.items)]
    for change in changes:
        change(made)
        await asyncio.sleep(0)
        counts.append(len(connection.items))
    return counts


def drain(made: PickerServer) -> None:
    made.balancer.drain(ONE)


def drain_both(made: PickerServer) -> None:
    made.balancer.drain(ONE)
    made.balancer.drain(TWO)


def fail(made: PickerServer) -> None:
    made.balancer.set_failing(made.balancer.pools[0], "down")


def learn(made: PickerServer) -> None:
    made.balancer.set_alpha("0.6", "")
    for _ in range(10):
        made.balancer.open()
    made.balancer.tick()


def remove(made: PickerServer) -> None:
    made.balancer.remove(ONE)


def test_envoys_get_changes_of_pools_whatever_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is off here. Changes made together are pushed once; what Envoy does not need is not pushed."""
    monkeypatch.setattr(EventLog, "write", lambda log, event: None)
    assert asyncio.run(responses_after(drain, fail, learn, remove)) == [1, 2, 2, 2, 3]
    assert asyncio.run(responses_after(drain_both)) == [1, 2]


async def state_after_each(state: Path) -> list[list[tuple[bool, bool]]]:
    made = make_server(state)
    found = []
    for change in (drain, lambda made: made.balancer.open(), lambda made: made.balancer.remove(TWO), fail):
        change(made)
        await asyncio.sleep(0)
        pools = json.loads(state.read_text())["pools"]
        found.append([(pool["draining"], pool["leaving"]) for pool in pools])
    return found


def test_the_state_file_follows_changes_of_pools(tmp_path: Path) -> None:
    """The second pool has a session, so it is leaving and not gone."""
    drained, both = [(True, False), (False, False)], [(True, False), (False, True)]
    assert asyncio.run(state_after_each(tmp_path / "state.json")) == [drained, drained, both, both]


async def restored(state: Path) -> PickerServer:
    made = make_server(state, restore=True)
    await asyncio.sleep(0)
    return made


def test_a_state_file_of_an_earlier_version_is_read_and_written_with_new_names(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text(STATE)
    made = asyncio.run(restored(state))
    assert [pool.stage for pool in made.balancer.pools] == [
        Stage.DRAINING,
        Stage.LEAVING_DRAINING,
        Stage.LEAVING,
        Stage.CHECKING,
    ]
    expected = json.loads(STATE)
    expected["pools"][3]["endpoint"] = "127.0.0.1:9004"
    expected["settings"] = {OLD_KEYS.get(key, key): value for key, value in expected["settings"].items()}
    expected["settings"]["admin"] = "127.0.0.1:8081"  # the default of today
    # What follows is what that version did not have.
    expected["settings"] |= {"store": None, "fleet": "default", "record": None, "resolver": None}
    expected["settings"] |= {"sticky": None, "sticky_margin": None, "sticky_key_file": None}
    expected["pools"] = [{**pool, "weight": 1.0, "source": ""} for pool in expected["pools"]]
    expected |= {"answers": [], "by_hand": []}
    expected["settings"] |= dict.fromkeys(TlsSettings.model_fields)
    assert json.loads(state.read_text()) == expected


async def readiness(folder: GatewayFolder | None) -> list[bool]:
    made = make_server(gateway=folder)
    found = [made.ready]
    if folder is not None:
        folder.set_accepting(True)
    found.append(made.ready)
    drain_both(made)
    found.append(made.ready)
    made.balancer.undrain(ONE)
    found.append(made.ready)
    if folder is not None:
        folder.set_accepting(False)
        folder.set_accepting(False)  # again: nothing changes
    return [*found, made.ready]


def test_a_picker_is_ready_while_a_pool_is_available_and_its_gateway_accepts_clients(tmp_path: Path) -> None:
    """Until the gateway says so, it does not."""
    assert asyncio.run(readiness(None)) == [True, True, False, True, True]
    assert asyncio.run(readiness(GatewayFolder(tmp_path))) == [False, True, False, True, False]


def test_a_state_file_that_cannot_be_written_is_reported_each_time_it_begins(tmp_path: Path) -> None:
    folder, lines = tmp_path / "there", io.StringIO()
    saver = StateSaver(lambda: [folder / "state.json"], Counted().state, object, Log(lines))
    for exists in (False, False, True, False, False):
        if exists:
            folder.mkdir()
        saver.save()
        if exists:
            shutil.rmtree(folder)
    assert lines.getvalue().count("state not written") == 2


class Counted:
    """A state that differs each time."""

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def state(self) -> PickerState:
        self.count += 1
        settings = read_settings({"listen": "127.0.0.1:4000", "pool": [str(ONE)]}, None)
        return PickerState(settings=settings, pools=[], alpha=f"0.{self.count}")


def test_the_state_is_made_only_if_its_source_has_changed(tmp_path: Path) -> None:
    counted, source = Counted(), [1]
    saver = StateSaver(lambda: [tmp_path / "state.json"], counted.state, lambda: list(source), Log(None))
    for number in (1, 1, 2, 2, 2):
        source[0] = number
        saver.save()
    assert counted.count == 2
    assert load(tmp_path / "state.json") == Counted(1).state()


def test_a_picker_starts_although_an_operator_added_a_pool_under_another_name(
    tmp_path: Path,
) -> None:
    """The settings list the same server since then."""
    state = tmp_path / "state.json"
    old = read_settings({"listen": "127.0.0.1:4000", "pool": [str(TWO)]}, None)
    known = [KnownPool(address=Address("localhost", ONE.port), endpoint=ONE), KnownPool(address=TWO)]
    save(state, PickerState(settings=old, pools=known))
    made = asyncio.run(restored(state))
    assert [str(pool.address) for pool in made.balancer.pools] == [f"localhost:{ONE.port}", str(TWO)]
    [line] = [line.facts for line in made.log.recent if line.name == "pool not added"]
    assert line == {"pool": str(ONE), "reason": f"Pool {ONE} already exists, as localhost:{ONE.port}."}


def test_a_weight_of_the_state_file_is_dropped_if_the_policy_ignores_it(tmp_path: Path) -> None:
    """The policy was changed before the restart. The picker starts all the same."""
    state = tmp_path / "state.json"
    state.write_text(
        STATE.replace('"draining":true,"leaving":false', '"weight":4,"draining":true,"leaving":false')
    )
    before = load(state)
    assert before is not None
    given: dict[str, Any] = {"listen": "127.0.0.1:4000", "pool": [str(ONE), str(TWO)]}

    async def weights(**more: str) -> list[float]:
        settings = read_settings({**given, **more}, None)
        made = PickerServer(
            settings, given=given, config=None, state=None, restored=before, log=Log(None), files=1000, seen=None
        )
        return [pool.weight for pool in made.balancer.pools]

    assert asyncio.run(weights()) == [4, 1, 1, 1]
    assert asyncio.run(weights(policy="jsq")) == [1, 1, 1, 1]


def test_a_settings_file_that_has_become_invalid_is_replaced_by_the_saved_settings(tmp_path: Path) -> None:
    state, config, lines = tmp_path / "state.json", tmp_path / "settings.toml", io.StringIO()
    state.write_text(STATE)
    config.write_text("no settings")
    found = server._settings({"slow_start": 3.0}, config, load(state), Log(lines))
    assert (found.alpha, found.listen) == ("0.85", Address("127.0.0.1", 4000))
    assert found.pool == (WeightedPool(ONE), WeightedPool(TWO))
    assert found.slow_start == 3.0  # options win
    assert json.loads(lines.getvalue())["event"] == "settings not used"
    with pytest.raises(InputError):
        server._settings({}, config, None, Log(None))


async def read_or_end(reader: asyncio.StreamReader, size: int) -> bytes:
    """Read up to `size` bytes (-1: until the end); nothing if the picker has reset the connection."""
    with suppress(ConnectionError):
        return await reader.read(size)
    return b""


def test_half_of_the_open_files_are_for_connections_and_all_close_with_the_picker() -> None:
    async def play() -> None:
        made, readers = make_server(files=5), []
        listening = await asyncio.get_running_loop().create_server(made.connection, "127.0.0.1", 0)
        async with asyncio.timeout(PATIENCE), listening, AsyncExitStack() as stack:
            for welcome in (True, True, False):
                reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
                stack.callback(writer.close)
                assert bool(await read_or_end(reader, 1)) is welcome
                readers.append(reader)
            await made.close()
            for reader in readers:
                await read_or_end(reader, -1)  # an open connection would time out here

    asyncio.run(play())
