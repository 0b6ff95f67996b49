"""The picker as a gRPC server, with gRPC's own client: picks, endpoints, health, and which Envoys are accepted."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evenly.live.wire.protobuf import field, fields, submessage
from tests.live.processes import PATIENCE, ask, eventually
from tests.live.rig import Picker

if TYPE_CHECKING:
    import grpc

POOLS = ["127.0.0.1:9001", "127.0.0.1:9002"]
PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
ENDPOINTS = "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints"
REQUEST_HEADERS, RESPONSE_HEADERS = field(2, b"some headers"), field(3, b"some headers")
TUNING_S = 300.0  # for `nice evenly tune`, which computes for seconds on an idle machine


def same(message: bytes) -> bytes:
    return message


@pytest.fixture(scope="module")
def picker() -> Iterator[Picker]:
    with Picker(
        "--policy", "jsq", "--slow-start", "0", *(word for pool in POOLS for word in ("--pool", pool))
    ) as found:
        found.wait()
        yield found


@pytest.fixture
def channel(picker: Picker) -> Iterator[grpc.Channel]:
    import grpc

    nothing_open(picker)  # of the tests before
    with grpc.insecure_channel(f"127.0.0.1:{picker.port}") as found:
        yield found


@contextmanager
def stream(
    channel: grpc.Channel, path: str, metadata: tuple[tuple[str, str], ...] = ()
) -> Iterator[tuple[Callable[[bytes], None], Any]]:
    """Open a call; yield a function that sends, and the answers."""
    waiting: queue.Queue[bytes | None] = queue.Queue()
    call = channel.stream_stream(path, same, same)(iter(waiting.get, None), metadata=metadata, timeout=PATIENCE)
    try:
        yield waiting.put, call
    finally:
        waiting.put(None)
        for _ in call:
            pass


def nothing_open(picker: Picker) -> None:
    """Wait until the picker has seen the end of all streams, and a removed pool has gone."""
    eventually(lambda: sessions(picker), partial(eq, [0, 0]))


def sessions(picker: Picker) -> list[int]:
    return [pool["sessions"] for pool in picker.state()["pools"]]


def check(channel: grpc.Channel, service: str) -> bytes:
    """Check the health of a service; return the response, status 1 if it is serving."""
    call = channel.unary_unary("/grpc.health.v1.Health/Check", same, same)
    response: bytes = call(field(1, service) if service else b"", timeout=PATIENCE)
    return response


def test_the_services_of_the_picker_are_serving(channel: grpc.Channel) -> None:
    for service in ["", PROCESS.split("/")[1], ENDPOINTS.split("/")[1]]:
        assert check(channel, service) == field(1, 1)


def test_the_health_of_an_unknown_service_is_not_found(channel: grpc.Channel) -> None:
    import grpc

    for service in ["nonsense", PROCESS[1:], "x" * 100_000]:
        with pytest.raises(grpc.RpcError) as caught:
            check(channel, service)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert check(channel, "") == field(1, 1)  # the connection goes on


def test_an_unknown_call_is_unimplemented(channel: grpc.Channel) -> None:
    import grpc

    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/grpc.health.v1.Health/Watch", same, same)(b"", timeout=PATIENCE)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_stream_is_a_session_from_its_pick_to_its_end(picker: Picker, channel: grpc.Channel) -> None:
    with stream(channel, PROCESS) as (send, answers), stream(channel, PROCESS) as (send_other, others):
        send(REQUEST_HEADERS)
        picked = next(answers)
        assert any(pool.encode() in picked for pool in POOLS)
        send_other(REQUEST_HEADERS)
        assert next(others) != picked  # the first was counted at its pick
        assert sessions(picker) == [1, 1]
        send(RESPONSE_HEADERS)
        assert next(answers) == field(2, b"")
        send(REQUEST_HEADERS)  # a second question on one stream is the same session
        assert next(answers) == picked
        assert sessions(picker) == [1, 1]
    eventually(lambda: sessions(picker), lambda counts: counts == [0, 0])


def assignment(answer: bytes) -> dict[str, bool]:
    """Return the ports of the pools in an answer, and whether each is draining."""
    found = {}
    for number, locality in fields(submessage(answer, 2, 2) or b""):
        if number == 2:
            assert isinstance(locality, bytes)
            for key, endpoint in fields(locality):
                if key == 2:
                    assert isinstance(endpoint, bytes)
                    where = dict(fields(submessage(endpoint, 1, 1, 1) or b""))
                    found[str(where[3])] = dict(fields(endpoint)).get(2) == 3
    return found


def test_envoys_get_the_pools_and_every_change(picker: Picker, channel: grpc.Channel) -> None:
    with stream(channel, ENDPOINTS) as (send, answers):
        send(field(3, "pools"))
        first = next(answers)
        assert submessage(first, 2, 2, 1) == b"pools"
        assert assignment(first) == {"9001": False, "9002": False}
        send(field(1, "0") + field(3, "pools") + field(5, "0"))  # an ACK: no response
        assert ask(picker.admin, "/pools", "POST", {"address": "127.0.0.1:9003"})[0] == 201
        assert assignment(next(answers)) == {
            "9001": False,
            "9002": False,
            "9003": False,
        }
        assert ask(picker.admin, "/pools/127.0.0.1:9003/drain", "POST")[0] == 200
        assert assignment(next(answers))["9003"]
        send(field(3, "pools") + field(5, "2") + field(6, field(2, "a reason")))
        eventually(picker.output, lambda said: "endpoints refused" in said and "a reason" in said)
        assert ask(picker.admin, "/pools/127.0.0.1:9003", "DELETE")[0] == 200
        for answer in answers:
            if assignment(answer) == {"9001": False, "9002": False}:
                break


def test_an_envoy_with_a_bad_announcement_is_logged_once_and_picks_go_on(
    picker: Picker, channel: grpc.Channel
) -> None:
    for _ in range(3):
        with stream(channel, PROCESS, (("x-evenly-envoy", "nonsense"),)) as (send, answers):
            send(REQUEST_HEADERS)
            assert b"127.0.0.1:900" in next(answers)
    said = eventually(picker.output, lambda text: "envoy not believed" in text)
    assert said.count("envoy not believed") == 1
    assert picker.state()["envoys"] == []


def test_a_message_that_is_none_ends_the_connection_of_its_sender_alone(picker: Picker) -> None:
    import grpc

    nothing_open(picker)
    with (
        grpc.insecure_channel(f"127.0.0.1:{picker.port}") as good,
        grpc.insecure_channel(f"127.0.0.1:{picker.port}", [("grpc.use_local_subchannel_pool", 1)]) as bad,
        stream(good, PROCESS) as (send, answers),
    ):
        send(REQUEST_HEADERS)
        next(answers)
        with pytest.raises(grpc.RpcError):
            bad.stream_stream(PROCESS, same, same)(iter([b"\xff\xff"]), timeout=PATIENCE).__next__()
        send(RESPONSE_HEADERS)
        assert next(answers) == field(2, b"")
        assert sum(sessions(picker)) == 1


def test_an_address_that_is_taken_is_said_in_one_sentence(picker: Picker) -> None:
    other = Picker("--pool", POOLS[0])
    other.command = tuple(str(picker.port).join(word.split(str(other.port))) for word in other.command)
    with other:
        said = eventually(other.output, lambda text: "evenly: " in text)
        assert f"Cannot listen on 127.0.0.1:{picker.port}: address already in use." in said
        assert "Traceback" not in said


def options(*pools: str) -> list[str]:
    return [word for pool in pools for word in ("--pool", pool)]


@pytest.mark.full
def test_alpha_is_what_tune_advises_for_the_pools_there_are() -> None:
    from evenly.advice.alpha import recommend_alpha

    with Picker("--load-max", "3", *options(*POOLS, "127.0.0.1:9100")) as started:
        started.wait()
        assert started.state()["alpha"] == 0.5  # until it is known
        for pools in (3, 8):
            before = started.state()["alpha"]
            for number in range(len(started.state()["pools"]), pools):
                ask(started.admin, "/pools", "POST", {"address": f"127.0.0.1:{9200 + number}"})
            advised = recommend_alpha(pools=pools, load_max=3.0).alpha
            assert advised != before
            eventually(lambda: started.state()["alpha"], partial(eq, advised), TUNING_S)


@pytest.mark.full
def test_an_envoy_gets_a_thousand_pools(tmp_path: Path) -> None:
    """They need more than one frame."""
    import grpc

    config = tmp_path / "picker.toml"
    ports = range(20_000, 21_000)
    config.write_text(f"pool = {[f'127.0.0.1:{port}' for port in ports]}\n")
    with Picker("--policy", "jsq", "--config", str(config)) as started:
        started.wait()
        with (
            grpc.insecure_channel(f"127.0.0.1:{started.port}") as channel,
            stream(channel, ENDPOINTS) as (send, answers),
        ):
            send(field(3, "pools"))
            assert assignment(next(answers)) == dict.fromkeys(map(str, ports), False)


def remembering(state: Path, *pools: str) -> list[tuple[str, str]]:
    """Start a picker with this state file; return its pools and their states."""
    with Picker("--policy", "jsq", "--slow-start", "0", "--state", str(state), *options(*pools)) as started:
        started.wait()
        return [(pool["address"], pool["state"]) for pool in started.state()["pools"]]


@pytest.mark.full
def test_a_failed_start_leaves_the_state_file_intact(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    checking = [(pool, "checking") for pool in POOLS]
    assert remembering(state, *POOLS) == checking
    failing = Picker("--policy", "jsq", "--state", str(state), *options(*POOLS, "no-such-host.invalid:80"))
    with failing:
        eventually(failing.output, lambda said: "Cannot resolve the host of no-such-host.invalid:80" in said)
    assert remembering(state, *POOLS) == checking


def test_pools_changed_at_run_time_survive_a_restart(tmp_path: Path) -> None:
    import grpc

    state = tmp_path / "state.json"
    with Picker("--policy", "jsq", "--slow-start", "0", "--state", str(state), *options(*POOLS)) as started:
        started.wait()
        ask(started.admin, "/pools", "POST", {"address": "127.0.0.1:9003"})
        ask(started.admin, f"/pools/{POOLS[0]}/drain", "POST")
        with (
            suppress(grpc.RpcError),  # the picker dies
            grpc.insecure_channel(f"127.0.0.1:{started.port}") as channel,
            stream(channel, PROCESS) as (send, answers),
            stream(channel, PROCESS) as (send_other, others),
        ):
            for say, hear in ((send, answers), (send_other, others)):
                say(REQUEST_HEADERS)
                next(hear)
            ask(started.admin, f"/pools/{POOLS[1]}", "DELETE")
            eventually(state.read_text, lambda text: '"leaving":true' in text)
            started.kill()
    # The one that was leaving is kept until it is known that it has no sessions.
    assert remembering(state, *POOLS) == [
        (POOLS[0], "draining"),
        (POOLS[1], "leaving"),
        ("127.0.0.1:9003", "checking"),
    ]


@pytest.mark.full
def test_a_picker_with_a_state_file_starts_although_its_config_file_went_bad(tmp_path: Path) -> None:
    state, config = tmp_path / "state.json", tmp_path / "picker.toml"
    config.write_text(f'pool = ["{POOLS[0]}"]\npolicy = "jsq"\n')
    with Picker("--state", str(state), "--config", str(config)) as started:
        started.wait()
        config.write_text("pool = [")
        eventually(started.output, lambda said: "settings not used" in said)
        started.kill()
        started.start()
        started.wait()
        assert [pool["address"] for pool in started.state()["pools"]] == POOLS[:1]
        config.write_text(f'pool = ["{POOLS[1]}", "10.0.0..1:80"]\npolicy = "jsq"\n')
        eventually(started.output, lambda said: "is not a valid IPv4 address" in said)
        config.unlink()
        os.mkfifo(config)
        eventually(started.output, lambda said: "it is not a regular file" in said)
        config.unlink()
        config.write_text(f'pool = ["{POOLS[1]}"]\npolicy = "jsq"\n')
        eventually(
            lambda: [pool["address"] for pool in started.state()["pools"]], lambda found: found == POOLS[1:]
        )


def test_a_pool_may_get_another_name_in_the_config_file(tmp_path: Path) -> None:
    import grpc

    config = tmp_path / "picker.toml"
    config.write_text('pool = ["localhost:9001"]\npolicy = "jsq"\nslow_start = 0\n')
    with Picker("--config", str(config)) as started:
        started.wait()
        with (
            grpc.insecure_channel(f"127.0.0.1:{started.port}") as channel,
            stream(channel, PROCESS) as (send, answers),
        ):
            send(REQUEST_HEADERS)
            next(answers)
            config.write_text('pool = ["127.0.0.1:9001"]\npolicy = "jsq"\nslow_start = 0\n')
            found = eventually(started.state, lambda state: state["pools"][0]["address"] == "127.0.0.1:9001")
            assert [(pool["sessions"], pool["state"]) for pool in found["pools"]] == [(1, "checking")]


def test_when_all_pools_drain_new_sessions_are_turned_away(picker: Picker, channel: grpc.Channel) -> None:
    for pool in POOLS:
        ask(picker.admin, f"/pools/{pool}/drain", "POST")
    with stream(channel, PROCESS) as (send, answers):
        send(REQUEST_HEADERS)
        assert submessage(next(answers), 7, 1) == field(1, 503)
    for pool in POOLS:
        ask(picker.admin, f"/pools/{pool}/undrain", "POST")
    assert sessions(picker) == [0, 0]


@pytest.mark.full
def test_a_log_that_is_not_read_blocks_nothing() -> None:
    command = [sys.executable, "-m", "evenly", "picker", "--listen", "127.0.0.1:0", "--policy", "jsq"]
    with subprocess.Popen(
        [*command, *options(*POOLS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            admin = int(re.search(r"http://127.0.0.1:(\d+)", process.stdout.readline())[1])  # type: ignore[index]
            for _ in range(600):  # some 100 bytes a line, into a pipe of 64 KiB
                assert ask(admin, f"/pools/{POOLS[0]}/drain", "POST")[0] == 200
                assert ask(admin, f"/pools/{POOLS[0]}/undrain", "POST")[0] == 200
        finally:
            process.kill()


@pytest.mark.full
def test_a_ready_line_that_cannot_be_written_ends_the_picker() -> None:
    command = [sys.executable, "-m", "evenly", "picker", "--listen", "127.0.0.1:0", "--policy", "jsq"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, *options(*POOLS)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if not line.startswith("{")] == [
        "evenly: Cannot write the output: No space left on device."
    ]


@pytest.mark.full
def test_an_acknowledged_change_is_in_the_state_file(tmp_path: Path) -> None:
    """The file is read right after each answer: a picker killed then must not lose the change."""
    state = tmp_path / "state.json"
    with Picker("--policy", "jsq", "--state-file", str(state), *options(*POOLS)) as started:
        started.wait()

        def known() -> dict[str, tuple[bool, bool]]:
            pools = json.loads(state.read_text())["pools"]
            return {pool["address"]: (pool["draining"], pool["leaving"]) for pool in pools}

        for port in range(9300, 9320):
            address = f"127.0.0.1:{port}"
            assert ask(started.admin, "/pools", "POST", {"address": address})[0] == 201
            assert known()[address] == (False, False)
            assert ask(started.admin, f"/pools/{address}/drain", "POST")[0] == 200
            assert known()[address] == (True, False)
            assert ask(started.admin, f"/pools/{address}", "DELETE")[0] == 200
            assert address not in known()
