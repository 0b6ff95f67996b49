"""The state file of a gateway: where it is, and who may write it while one gateway takes over from another."""

from __future__ import annotations

import asyncio
import io
import json
import signal
from pathlib import Path

import pytest

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.gateway.lasting_state import check_state_file, lasting_file
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log
from evenly.live.picker.state_file import PickerState
from tests.live.processes import ask
from tests.live.rig import Picker
from tests.live.test_picker_server import ONE, TWO, make_server

LISTEN = Address("127.0.0.1", 80)


def test_the_file_is_named_after_the_address_in_the_folder_of_the_unit_or_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(None)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    unit, user = str(tmp_path / "unit"), str(tmp_path / "user")
    of_unit, of_user = {"STATE_DIRECTORY": f"{unit}:/other"}, {"XDG_STATE_HOME": user}
    assert lasting_file(None, LISTEN, of_unit | of_user, log) == Path(unit, "gateway-127.0.0.1-80.json")
    assert lasting_file(None, LISTEN, of_user, log) == Path(user, "evenly", "gateway-127.0.0.1-80.json")
    at_home = tmp_path / "home" / ".local" / "state" / "evenly" / "gateway-__1-80.json"
    for environment in ({}, {"XDG_STATE_HOME": "relative"}):  # which the XDG rules say to ignore
        assert lasting_file(None, Address("::1", 80), environment, log) == at_home


def test_there_is_no_file_for_port_0_nor_where_it_cannot_be_written(tmp_path: Path) -> None:
    lines, blocked = io.StringIO(), tmp_path / "file"
    blocked.touch()
    assert lasting_file(None, Address("127.0.0.1", 0), {"XDG_STATE_HOME": str(tmp_path)}, Log(lines)) is None
    assert (lines.getvalue(), [*tmp_path.iterdir()]) == ("", [blocked])
    assert lasting_file(None, LISTEN, {"STATE_DIRECTORY": str(blocked)}, Log(lines)) is None
    line = json.loads(lines.getvalue())
    assert (line["event"], line["level"]) == ("changes will be forgotten", "warning")
    assert str(blocked) in line["reason"]


def test_a_file_that_is_given_must_be_one_that_we_wrote_or_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    check_state_file(file)
    assert lasting_file(file, Address("127.0.0.1", 0), {}, Log(None)) == file
    file.write_text("pool = []")
    with pytest.raises(InputError, match="is not a file that a picker wrote"):
        check_state_file(file)
    with pytest.raises(InputError, match="there is no directory"):
        check_state_file(tmp_path / "nowhere" / "state.json")


def drained(file: Path) -> list[str]:
    """Return the drained pools of a state file."""
    if not file.exists():
        return []
    return [pool["address"] for pool in json.loads(file.read_text())["pools"] if pool["draining"]]


async def generations(folder: Path) -> list[tuple[list[str], list[str]]]:
    """Let a gateway take over from another. Return the lasting file and the private one after each change."""
    lasting, (mine, found) = folder / "lasting.json", (GatewayFolder(folder), list[tuple[list[str], list[str]]]())
    mine.set_taking_over(True)
    made = make_server(lasting, gateway=mine)

    async def after(address: Address) -> None:
        made.balancer.drain(address)
        await asyncio.sleep(0)
        found.append((drained(lasting), drained(mine.state_file)))

    await after(ONE)
    mine.set_taking_over(False)
    made._save()
    found.append((drained(lasting), drained(mine.state_file)))
    mine.set_handed_over()
    await after(TWO)
    return found


def test_only_the_gateway_in_charge_writes_the_lasting_file(tmp_path: Path) -> None:
    one, two = str(ONE), str(TWO)
    assert asyncio.run(generations(tmp_path)) == [([], [one]), ([one], [one]), ([one], [one, two])]


def state_of(pools: list[dict[str, object]], by_hand: list[dict[str, object]]) -> PickerState:
    settings = {"listen": "127.0.0.1:4000", "pool": ["a:1", "b:1", "c:1"], "policy": "jsq"}
    return PickerState.model_validate({"settings": settings, "pools": pools, "by_hand": by_hand})


def test_pools_drained_and_removed_by_hand_are_counted() -> None:
    """Of a, b, c and one of DNS: a is drained, b removed and still leaving, c removed and gone."""
    pools = [{"address": "a:1", "draining": True}, {"address": "b:1", "draining": True, "leaving": True}]
    state = state_of(pools, [{"address": "d:1", "removed": True, "listed": 0.0}])
    configured = state.settings.fixed
    assert state.by_operator(configured) == (1, 3, 0)
    assert state.by_operator(configured[:2]) == (1, 2, 0)  # c is no longer in the settings
    more = state_of([*pools, {"address": "d:1"}], [{"address": "d:1", "removed": False, "listed": 0.0}])
    assert more.by_operator(configured) == (1, 2, 1)
    assert state_of([], []).by_operator([]) == (0, 0, 0)


def test_a_restart_with_all_pools_drained_or_removed_is_a_warning(tmp_path: Path) -> None:
    pools = [f"127.0.0.1:{port}" for port in (9, 10)]
    options = [word for pool in pools for word in ("--pool", pool)]
    with Picker(*options, "--policy", "jsq", "--state-file", str(tmp_path / "state.json")) as picker:
        for step, method, path in ((0, "POST", f"/pools/{pools[0]}/drain"), (1, "DELETE", f"/pools/{pools[1]}")):
            picker.wait()
            assert ask(picker.admin, path, method)[0] == 200, step
            assert picker.kill(signal.SIGTERM) == 0
            picker.start()
        picker.wait()
        events = [json.loads(line) for line in picker.output().splitlines() if line.startswith('{"time"')]
    read = [event for event in events if event["event"] == "state read"]
    found = [(event["drained"], event["removed"], event["level"]) for event in read]
    assert found == [(1, 0, "info"), (1, 1, "warning")]
