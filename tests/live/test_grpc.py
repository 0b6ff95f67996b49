"""gRPC through the gateway: a real grpcio server behind it, a real grpcio client in front."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

from tests.live.certificates import Authority
from tests.live.processes import PATIENCE, ask, eventually
from tests.live.rig import Gateway, PoolProcess

if TYPE_CHECKING:
    import grpc

    from tests.live.grpc_pool import GrpcPool


def states(gateway: Gateway) -> list[str]:
    return [pool["state"] for pool in gateway.state()["pools"]]


def counts(gateway: Gateway) -> list[int]:
    return [pool["sessions"] for pool in gateway.state()["pools"]]


class Chat:
    """A stream in both directions, open until it is closed or canceled."""

    def __init__(self, channel: grpc.Channel) -> None:
        from tests.live.grpc_pool import method

        self._messages: SimpleQueue[bytes | None] = SimpleQueue()
        self.call: Any = method(channel, "Chat", "stream_stream")(iter(self._messages.get, None), timeout=PATIENCE)

    def echo(self) -> None:
        self._messages.put(b"ping")
        assert next(self.call) == b"ping"

    def close(self) -> str:
        """End the stream, and return the pool that its trailer names."""
        from tests.live.grpc_pool import TRAILER

        self._messages.put(None)
        assert list(self.call) == []
        return str(dict(self.call.trailing_metadata())[TRAILER])


# --- gRPC without TLS, and health checks with its own protocol -------------------------------------------------


class Front:
    """A gateway in front of two gRPC servers, and of a server that speaks HTTP/1.1."""

    def __init__(self, gateway: Gateway, pools: list[GrpcPool], channel: grpc.Channel) -> None:
        self.gateway = gateway
        self.pools = pools
        self.channel = channel


@pytest.fixture(scope="module")
def front() -> Iterator[Front]:
    import grpc

    from tests.live.grpc_pool import SERVICE, GrpcPool

    with ExitStack() as stack:
        pools = [stack.enter_context(GrpcPool(health=SERVICE)) for _ in range(2)]
        other = stack.enter_context(PoolProcess())
        addresses = [*(pool.address for pool in pools), other.address]
        words = [word for address in addresses for word in ("--pool", f"h2://{address}")]
        options = ("--policy", "jsq", "--health-grpc", SERVICE, "--slow-start", "0")
        gateway = stack.enter_context(Gateway(*words, *options, patient=True))
        gateway.wait()
        channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{gateway.port}"))
        eventually(lambda: states(gateway), lambda seen: seen == ["serving", "serving", "failing"])
        yield Front(gateway, pools, channel)


def test_calls_keep_their_messages_status_and_trailers(front: Front) -> None:
    import grpc

    from tests.live.grpc_pool import TRAILER, method

    answer, call = method(front.channel, "Say").with_call(b"hello", timeout=PATIENCE)
    assert answer == b"hello"
    assert dict(call.trailing_metadata())[TRAILER] in {pool.address for pool in front.pools}
    numbers = method(front.channel, "Count", "unary_stream")(b"1000", timeout=PATIENCE)
    assert list(map(int, numbers)) == [*range(1000)]
    assert TRAILER in dict(numbers.trailing_metadata())
    large = bytes(2**21)
    assert method(front.channel, "Say")(large, timeout=PATIENCE) == large
    for name, code, details in (
        ("Fail", grpc.StatusCode.FAILED_PRECONDITION, "not now"),
        ("None", grpc.StatusCode.UNIMPLEMENTED, "Method not found!"),
    ):
        with pytest.raises(grpc.RpcError) as error:
            method(front.channel, name)(b"not now", timeout=PATIENCE)
        assert (error.value.code(), error.value.details()) == (code, details)
    eventually(lambda: counts(front.gateway), lambda seen: seen == [0, 0, 0])


def test_a_stream_is_a_session(front: Front) -> None:
    """All streams share one connection of the client. They are spread, and leave nothing behind."""
    chats = [Chat(front.channel) for _ in range(8)]
    for chat in chats:
        chat.echo()
    eventually(lambda: counts(front.gateway), lambda seen: seen == [4, 4, 0])
    assert [pool.calls for pool in front.pools] == [4, 4]
    named = [chat.close() for chat in chats[:4]]
    assert {*named} <= {pool.address for pool in front.pools}
    for chat in chats[4:]:
        chat.call.cancel()
    eventually(lambda: counts(front.gateway), lambda seen: seen == [0, 0, 0])
    eventually(lambda: [pool.calls for pool in front.pools], lambda seen: seen == [0, 0])
    assert front.gateway.state()["unpicked_sessions"] == 0


def test_a_server_that_says_it_does_not_serve_is_failing(front: Front) -> None:
    """Its open streams continue. New ones go elsewhere, and come back when it serves again."""
    from tests.live.grpc_pool import NOT_SERVING, SERVING

    sick, well = front.pools
    chats = [Chat(front.channel) for _ in range(2)]
    for chat in chats:
        chat.echo()
    sick.status = NOT_SERVING
    eventually(lambda: states(front.gateway), lambda seen: seen == ["failing", "serving", "failing"])
    chats += [Chat(front.channel) for _ in range(3)]
    for chat in chats:
        chat.echo()
    eventually(lambda: counts(front.gateway), lambda seen: seen == [1, 4, 0])
    assert [chat.close() for chat in chats[2:]] == [well.address] * 3
    sick.status = SERVING
    eventually(lambda: states(front.gateway), lambda seen: seen == ["serving", "serving", "failing"])
    for chat in chats[:2]:
        chat.close()
    eventually(lambda: counts(front.gateway), lambda seen: seen == [0, 0, 0])


def test_draining_all_pools_is_unavailable_to_clients_of_grpc(front: Front) -> None:
    import grpc

    from tests.live.grpc_pool import method

    for pool in front.gateway.state()["pools"]:
        assert ask(front.gateway.admin, f"/pools/{pool['address']}/drain", "POST")[0] == 200
    with pytest.raises(grpc.RpcError) as error:
        method(front.channel, "Say")(b"hello", timeout=PATIENCE)
    assert error.value.code() == grpc.StatusCode.UNAVAILABLE
    for pool in front.gateway.state()["pools"]:
        assert ask(front.gateway.admin, f"/pools/{pool['address']}/undrain", "POST")[0] == 200


# --- gRPC over TLS, and pools that speak the wrong protocol ----------------------------------------------------


@pytest.mark.long
def test_grpc_over_tls_on_both_sides(tmp_path: Path) -> None:
    """Without --health-grpc, servers need no health service. One of HTTP/1.1 is failing."""
    import grpc

    from tests.live.grpc_pool import GrpcPool, method, server_credentials

    ours = Authority(tmp_path, "ours")
    pair = ours.sign("server")
    with ExitStack() as stack:
        pool = stack.enter_context(GrpcPool(credentials=server_credentials(pair)))
        other = stack.enter_context(PoolProcess(*pair.files))
        words = [word for each in (pool, other) for word in ("--pool", f"h2s://localhost:{each.port}")]
        tls = ("--tls-cert", str(pair.cert), "--tls-key", str(pair.key), "--pool-ca", str(ours.cert))
        gateway = stack.enter_context(Gateway(*words, "--alpha", "0.5", *tls))
        gateway.wait()
        eventually(lambda: states(gateway), lambda seen: seen == ["serving", "failing"])
        trusting = grpc.ssl_channel_credentials(ours.cert.read_bytes())
        channel = stack.enter_context(grpc.secure_channel(f"localhost:{gateway.port}", trusting))
        chat = Chat(channel)
        chat.echo()
        assert method(channel, "Say")(b"hello", timeout=PATIENCE) == b"hello"
        eventually(lambda: counts(gateway), lambda seen: seen == [1, 0])
        assert chat.close() == pool.address
        eventually(lambda: counts(gateway), lambda seen: seen == [0, 0])


def test_a_grpc_server_without_its_scheme_is_failing() -> None:
    """It accepts connections, but it speaks first, which no server of HTTP/1.1 does."""
    from tests.live.grpc_pool import GrpcPool

    with GrpcPool() as strange, PoolProcess() as pool:
        pool.wait()
        words = [word for each in (strange, pool) for word in ("--pool", each.address)]
        with Gateway(*words, "--alpha", "0.5") as gateway:
            gateway.wait()
            eventually(lambda: states(gateway), lambda seen: seen == ["failing", "serving"])
            assert '"speaks": "HTTP/2"' in gateway.output()
            assert [ask(gateway.port, "/")[1] for _ in range(4)] == [pool.address] * 4
            assert states(gateway) == ["failing", "serving"]
