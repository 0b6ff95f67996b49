"""Picks among some of the pools, as the endpoint-picker protocol asks for in a request's metadata."""

from __future__ import annotations

import pytest

from evenly.live.addresses import Address
from evenly.live.envoy import ext_proc, names
from evenly.live.envoy.sticky import Return
from evenly.live.wire.protobuf import field
from evenly.policies import LIVE
from tests.live.test_sticky import Scene, at, request

SESSIONS = 60


def text_value(text: str) -> bytes:
    return field(3, text)


def list_value(*values: bytes) -> bytes:
    return field(6, b"".join(field(1, value) for value in values))


def hint(value: bytes, *, namespace: str = names.SUBSET_NAMESPACE, key: str = names.SUBSET) -> bytes:
    """Return request headers whose metadata have a value."""
    struct = field(1, field(1, key) + field(2, value))
    return request((":method", "GET")) + field(8, field(1, field(1, namespace) + field(2, struct)))


def among(*numbers: int) -> bytes:
    return hint(list_value(*(text_value(str(at(number))) for number in numbers)))


def test_only_metadata_of_the_namespace_name_a_subset() -> None:
    rows: list[tuple[bytes, list[Address] | None]] = [
        (request((":method", "GET")), None),
        (request((names.SUBSET, "127.0.0.1:9001")), None),  # a client's header
        (hint(text_value("127.0.0.1:9001"), namespace="envoy.lb"), None),
        (among(0, 2), [at(0), at(2)]),
        (hint(text_value("127.0.0.1:9001, 127.0.0.1:9003,")), [at(0), at(2)]),
        (
            hint(list_value(text_value("127.0.0.1:9001,127.0.0.1:9002"), text_value("[::1]:80"))),
            [at(0), at(1), Address("::1", 80)],
        ),
        (hint(list_value()), []),
        (hint(field(2, b"\0" * 8)), []),  # a number
        (hint(list_value(text_value("nonsense"), field(4, 1), text_value("127.0.0.1:9001"))), [at(0)]),
    ]
    for message, endpoints in rows:
        assert ext_proc.subset(message) == endpoints


@pytest.mark.parametrize("name", LIVE)
def test_every_policy_stays_inside(name: str) -> None:
    scene = Scene((1, 1, 1, 1), name=name)
    for _ in range(SESSIONS):
        stream = scene.stream()
        scene.answer(stream, among(1, 3, 3))
        scene.check_counts()
    counts = [pool.sessions for pool in scene.pools]
    assert counts[0] == counts[2] == 0
    assert counts[1] + counts[3] == scene.envoy.sessions == SESSIONS
    if name != "random":
        assert abs(counts[1] - counts[3]) <= (6 if "threshold" in name else 1)
    if "threshold" not in name:
        assert scene.balancer.picks == {name: SESSIONS}


def test_green_pools_of_the_subset_come_first_then_yellow_then_any() -> None:
    scene = Scene((1, 1, 1, 1), threshold=3)
    one, two = scene.pools[1], scene.pools[2]
    scene.fill(one, 3)  # yellow; the others are green
    scene.balancer.picks.clear()
    for expected in (1, 2, 3):
        scene.answer(scene.stream(), among(1, 2))
        assert (one.sessions, two.sessions) == (3, expected)
    assert scene.balancer.picks == {"green": 3}
    for _ in range(2):  # both are yellow
        scene.answer(scene.stream(), among(1, 2))
    assert (one.sessions, two.sessions) == (4, 4)
    assert scene.balancer.picks == {"green": 3, "yellow": 2}
    scene.answer(scene.stream(), among(1, 2))
    assert scene.balancer.picks == {"green": 3, "yellow": 2, "any": 1}
    scene.check_counts()


def test_weights_count_inside_a_subset() -> None:
    scene = Scene((1, 4, 1, 1), name="weighted-least")
    for _ in range(50):
        scene.answer(scene.stream(), among(0, 1))
    assert [pool.sessions for pool in scene.pools] == [10, 40, 0, 0]


def test_a_pool_at_its_slow_start_cap_serves_if_the_subset_has_no_other() -> None:
    scene = Scene(slow_start=10.0)
    new = scene.balancer.add(at(7), at(7))
    for expected in (1, 2, 3):
        scene.answer(scene.stream(), among(7))
        assert new.sessions == expected


def test_retries_stay_inside_and_in_rotation() -> None:
    scene = Scene((1,) * 5)
    scene.balancer.drain(at(4))
    answer = scene.answer(scene.stream(), among(0, 4, 1, 2, 3))
    picked = next(pool for pool in scene.pools if pool.sessions)
    spares = [at(number) for number in range(4) if at(number) != picked.endpoint]
    assert answer == ext_proc.pick_answer(picked.endpoint, *spares[:2])


def test_a_client_returns_only_inside_the_subset() -> None:
    scene = Scene()
    cookie = ("cookie", f"evenly-pool={scene.sticky.token(scene.pools[2])}")
    metadata = among(0, 1)[len(request((":method", "GET"))) :]
    stream = scene.stream()
    scene.answer(stream, request(cookie) + metadata)
    assert scene.pools[2].sessions == 0
    assert scene.sticky.seen[Return.MOVED] == 1
    scene.answer(scene.stream(), request(cookie) + among(2)[len(request((":method", "GET"))) :])
    assert scene.pools[2].sessions == 1
