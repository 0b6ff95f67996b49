"""The picker as a gRPC server, with gRPC's own client: picks, endpoints, health, and who is believed."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from evenly.live.wire.protobuf import field, fields, submessage
from tests.live.processes import ask, eventually
from tests.live.rig import Picker

POOLS = ["127.0.0.1:9001", "127.0.0.1:9002"]
PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
ENDPOINTS = "/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints"
REQUEST_HEADERS, RESPONSE_HEADERS = field(2, b"some headers"), field(3, b"some headers")


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
    with grpc.insecure_channel(f"127.0.0.1:{picker.port}") as found:
        yield found


@contextmanager
def stream(
    channel: grpc.Channel, path: str, metadata: tuple[tuple[str, str], ...] = ()
) -> Iterator[tuple[Callable[[bytes], None], Any]]:
    """Both directions of a call: a function that sends, and the answers."""
    waiting: queue.Queue[bytes | None] = queue.Queue()
    call = channel.stream_stream(path, same, same)(iter(waiting.get, None), metadata=metadata, timeout=20)
    try:
        yield waiting.put, call
    finally:
        waiting.put(None)
        for _ in call:
            pass


def sessions(picker: Picker) -> list[int]:
    return [pool["sessions"] for pool in picker.state()["pools"]]


def test_the_health_service_says_serving(channel: grpc.Channel) -> None:
    assert channel.unary_unary("/grpc.health.v1.Health/Check", same, same)(b"", timeout=20) == field(1, 1)


def test_what_is_not_served_is_said_to_be_unknown(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/grpc.health.v1.Health/Watch", same, same)(b"", timeout=20)
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
    """The ports of an answer's pools, and whether each is draining."""
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


def test_envoys_are_told_the_pools_and_every_change(picker: Picker, channel: grpc.Channel) -> None:
    with stream(channel, ENDPOINTS) as (send, answers):
        send(field(3, "pools"))
        first = next(answers)
        assert submessage(first, 2, 2, 1) == b"pools"
        assert assignment(first) == {"9001": False, "9002": False}
        send(field(1, "0") + field(3, "pools") + field(5, "0"))  # it is taken note of; nothing comes back
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


def test_an_envoy_that_cannot_be_believed_is_said_so_once_and_picks_go_on(
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
    with (
        grpc.insecure_channel(f"127.0.0.1:{picker.port}") as good,
        grpc.insecure_channel(f"127.0.0.1:{picker.port}", [("grpc.use_local_subchannel_pool", 1)]) as bad,
        stream(good, PROCESS) as (send, answers),
    ):
        send(REQUEST_HEADERS)
        next(answers)
        with pytest.raises(grpc.RpcError):
            bad.stream_stream(PROCESS, same, same)(iter([b"\xff\xff"]), timeout=20).__next__()
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
