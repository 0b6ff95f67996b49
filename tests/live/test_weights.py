"""Pools with weights: the balancer, its settings, the admin port and what Envoy is told, without processes."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from evenly.cli.main import main
from evenly.core import LearningRule, Policy, ThresholdPolicy, UtilityThreshold, make_policy
from evenly.errors import InputError
from evenly.live.addresses import MAX_WEIGHTS, Address
from evenly.live.admin.balancer_source import BalancerSource
from evenly.live.admin.metrics import balancer_metrics
from evenly.live.admin.schema import StateView
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.events import BalancerEvent, PoolWeightChanged, ThresholdChanged
from evenly.live.balancer.latency import Latency
from evenly.live.balancer.lifecycle import State
from evenly.live.dashboard.feed import Feed
from evenly.live.envoy.endpoint_weights import endpoint_weights
from evenly.live.log import Log
from evenly.live.picker.settings_watch import SettingsFile
from evenly.live.settings import Settings, read_settings

ALPHA = "0.6"
GIVEN = {"listen": "127.0.0.1:80"}


def at(number: int) -> Address:
    return Address("127.0.0.1", 9001 + number)


class Scene:
    """A balancer with a clock that is set by hand, and the events that it reported."""

    def __init__(
        self,
        weights: Sequence[float],
        *,
        name: str = "threshold",
        policy: Policy | None = None,
        slow_start: float = 0,
    ) -> None:
        self.now = 0.0
        self.events: list[BalancerEvent] = []
        self.balancer = Balancer(
            policy or UtilityThreshold(0, LearningRule(ALPHA)),
            name=name,
            choose=random.Random(1).choice,
            clock=lambda: self.now,
            slow_start=slow_start,
            report=self.events.append,
        )
        self.pools = [
            self.balancer.add(at(number), at(number), weight=weight, slowly=False)
            for number, weight in enumerate(weights)
        ]

    def open(self, count: int) -> None:
        for _ in range(count):
            assert self.balancer.open() is not None

    def sessions(self) -> list[int]:
        return [pool.sessions for pool in self.pools]

    def thresholds(self) -> list[int | None]:
        return [self.balancer.threshold_for(pool.weight) for pool in self.pools]


# --- one weight ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_with_one_weight_every_decision_is_that_of_the_plain_threshold_policy(weight: float) -> None:
    """Any history: the same picks, tokens, messages, thresholds and events, whatever the one weight is."""
    rng = random.Random(3)
    plain = Scene([1.0] * 5, policy=ThresholdPolicy(0, LearningRule(ALPHA)), slow_start=5.0)
    sized = Scene([weight] * 5, slow_start=5.0)
    open_: list[list[Any]] = [[], []]
    for _ in range(4000):
        event, number, count = rng.choice(EVENTS), rng.randrange(6), rng.randrange(30)
        for scene, opened in zip((plain, sized), open_, strict=True):
            play(scene, opened, event, number, count, 1.0 if scene is plain else weight)
        for figure in ("threshold", "tokens", "messages", "picks", "alpha", "sessions", "name"):
            assert getattr(plain.balancer, figure) == getattr(sized.balancer, figure), (figure, event)
        assert [pool.sessions for pool in plain.balancer.pools] == [pool.sessions for pool in sized.balancer.pools]
    assert without_weight(plain.events) == without_weight(sized.events)
    assert plain.balancer.messages.green > 100


EVENTS = ["open"] * 30 + ["close"] * 20 + ["tick"] * 5
EVENTS += [
    "unpicked",
    "elsewhere",
    "drain",
    "undrain",
    "fail",
    "recover",
    "remove",
    "add",
    "catch up",
    "lag",
    "alpha",
]


def play(scene: Scene, opened: list[Any], event: str, number: int, count: int, weight: float) -> None:
    """Apply one event, if the pool's state allows it."""
    balancer, pool = scene.balancer, scene.balancer.pool_at(at(number))
    staying = pool is not None and not pool.leaving
    if event == "open":
        opened.append(balancer.open())
    elif event == "close" and opened:
        session = opened.pop(count % len(opened))
        if session is not None:
            session.close()
    elif event == "tick":
        scene.now += 0.1 * count
        balancer.tick()
    elif event == "add" and not staying:
        balancer.add(at(number), at(number), weight=weight)
    elif event in ("drain", "undrain", "remove") and staying:
        getattr(balancer, event)(at(number))
    elif event == "fail" and pool is not None:
        balancer.set_failing(pool, "down")
    elif event == "recover" and pool is not None:
        balancer.set_well(pool)
    elif event == "unpicked" and pool is not None:
        balancer.set_unpicked(pool, count)
    elif event == "elsewhere" and pool is not None:
        balancer.set_elsewhere(pool, count)
    elif event in ("catch up", "lag"):
        balancer.catch_up(slack=int(event == "lag"))
    elif event == "alpha":
        balancer.set_alpha("0.85" if count % 2 else ALPHA, "")


def without_weight(events: list[BalancerEvent]) -> list[dict[str, object]]:
    return [{"kind": type(event), **{k: v for k, v in vars(event).items() if k != "weight"}} for event in events]


# --- different weights -----------------------------------------------------------------------------------------


def test_sessions_follow_the_weights() -> None:
    for name in ["threshold", "greedy-utility", "weighted-least"]:
        scene = Scene([1, 1, 4, 4], name=name, policy=None if name == "threshold" else make_policy(name))
        scene.open(50)
        assert scene.sessions() == [5, 5, 20, 20]


def test_the_balancer_makes_the_decisions_of_core_on_the_same_history() -> None:
    weights, rng = [1.0, 1.0, 2.5, 4.0], random.Random(5)
    scene = Scene(weights)
    core, choose = UtilityThreshold(0, LearningRule(ALPHA)), random.Random(1).choice
    for number, weight in enumerate(weights):
        core.join(number, 0, weight)
    sessions: list[Any] = []
    for _ in range(3000):
        if rng.random() * (40 + len(sessions)) < 40:
            sessions.append(scene.balancer.open())
            assert core.arrive(choose) == scene.pools.index(sessions[-1].pool)
        else:
            session = sessions.pop(rng.randrange(len(sessions)))
            core.depart(scene.pools.index(session.pool))
            session.close()
    assert scene.thresholds() == [core.threshold_of(number) for number in range(4)]
    assert scene.balancer.messages == core.messages
    assert scene.balancer.threshold == core.threshold_of(0)


def test_the_name_of_the_policy_says_whether_weights_differ() -> None:
    scene = Scene([4, 4])
    assert scene.balancer.name == "threshold"
    scene.balancer.add(at(2), at(2))
    assert scene.balancer.name == "threshold-utility"
    scene.balancer.remove(at(2))
    assert scene.balancer.name == "threshold"
    assert Scene([1, 1], name="threshold-utility").balancer.name == "threshold-utility"


def test_nothing_is_reported_about_thresholds_before_the_first_session() -> None:
    scene = Scene([1, 4, 2])
    scene.balancer.tick()
    assert not any(isinstance(event, ThresholdChanged) for event in scene.events)


def test_slow_start_leads_to_the_part_by_weight() -> None:
    scene = Scene([1, 1, 1], slow_start=10.0)
    scene.open(30)
    large = scene.balancer.add(at(3), at(3), weight=4)
    scene.balancer.set_well(large)
    scene.now = 5.0
    scene.balancer.tick()
    scene.open(40)
    # Half of its time is over: its cap is 1 + half of 4/7 of the sessions, which were 43 when it reached the cap.
    assert large.sessions == int(1 + 0.5 * 4 / 7 * 43) == 13
    scene.now = 10.0
    scene.balancer.tick()
    scene.open(62)
    assert [*scene.sessions(), large.sessions] == [19, 19, 19, 75]
    assert large.state is State.SERVING


def test_a_restart_finds_the_threshold_of_each_weight() -> None:
    """Sessions become known pool by pool, before the first pick."""
    scene = Scene([1, 1, 4, 4])
    for pool, count in zip(scene.pools, [5, 5, 20, 20], strict=True):
        scene.balancer.set_unpicked(pool, count)
        scene.balancer.catch_up()
    assert scene.thresholds() == [5, 5, 20, 20]
    scene.open(50)
    assert scene.sessions() == [10, 10, 40, 40]


def test_catching_up_allows_for_slack() -> None:
    scene = Scene([1, 4])
    for pool, count in zip(scene.pools, [5, 20], strict=True):
        scene.balancer.set_elsewhere(pool, count)
    scene.balancer.catch_up(slack=1)
    before = scene.thresholds()
    scene.balancer.set_elsewhere(scene.pools[0], 7)
    scene.balancer.catch_up(slack=1)
    assert scene.thresholds() == before
    scene.balancer.set_elsewhere(scene.pools[0], 9)
    scene.balancer.catch_up(slack=1)
    assert scene.thresholds() > before


# --- changes of weights ----------------------------------------------------------------------------------------


def test_a_changed_weight_keeps_sessions_and_fits_the_thresholds() -> None:
    scene = Scene([1, 1, 4, 4])
    scene.open(50)
    scene.balancer.drain(at(0))
    scene.balancer.set_weights({at(0): 9, at(1): 1, at(3): 1})
    assert scene.sessions() == [5, 5, 20, 20]
    assert scene.balancer.sessions == 50
    assert [event for event in scene.events if isinstance(event, PoolWeightChanged)] == [
        PoolWeightChanged(pool=at(0), before=1, weight=9),  # the weight of pool 1 has not changed
        PoolWeightChanged(pool=at(3), before=4, weight=1),
    ]
    assert scene.thresholds()[1:] == [7, 30, 7]  # 45 sessions in pools of weight 1, 4 and 1
    scene.open(30)
    assert [scene.sessions()[number] for number in (0, 3)] == [5, 20]  # drained; with more than its share
    scene.balancer.set_weights(dict.fromkeys((at(0), at(1), at(2), at(3)), 2))
    assert scene.balancer.name == "threshold"
    assert scene.thresholds() == [25] * 4  # a third of the 75 sessions that are in rotation


def test_weights_changed_while_no_pool_can_be_picked_keep_what_was_learned() -> None:
    scene = Scene([1, 1])
    scene.open(20)
    for number in (0, 1):
        scene.balancer.drain(at(number))
    scene.balancer.set_weights({at(1): 4})
    for number in (0, 1):
        scene.balancer.undrain(at(number))
    light, heavy = scene.thresholds()
    assert light is not None and light >= 9
    assert heavy is not None and heavy >= 36
    assert scene.sessions() == [10, 10]


def test_a_weight_changed_while_its_pool_is_out_counts_from_its_return() -> None:
    scene = Scene([1, 1, 1, 1], policy=make_policy("greedy-utility"), name="greedy-utility")
    scene.balancer.drain(at(2))
    scene.balancer.set_failing(scene.pools[3], "down")
    scene.balancer.set_weights({at(2): 4, at(3): 4})
    scene.open(4)
    assert scene.sessions() == [2, 2, 0, 0]
    scene.balancer.undrain(at(2))
    scene.balancer.set_well(scene.pools[3])
    scene.open(16)
    assert scene.sessions() == [2, 2, 8, 8]


def test_weights_that_cannot_be_are_refused_and_change_nothing() -> None:
    scene = Scene(range(1, MAX_WEIGHTS + 1))
    with pytest.raises(InputError, match="at most 64 different weights, not 65"):
        scene.balancer.add(at(999), at(999), weight=0.5)
    scene.balancer.add(at(999), at(999), weight=64)
    with pytest.raises(InputError, match="at most 64 different weights, not 65"):
        scene.balancer.set_weights({at(1): 2, at(999): 0.5})
    with pytest.raises(InputError, match="There is no pool"):
        scene.balancer.set_weights({at(0): 2, at(70): 2})
    assert [pool.weight for pool in scene.pools] == list(range(1, MAX_WEIGHTS + 1))
    scene.balancer.remove(at(0))
    scene.balancer.add(at(70), at(70), weight=0.5)  # in place of the one that left
    blind = Scene([1, 1], name="jsq", policy=make_policy("jsq"))
    for change in (
        lambda: blind.balancer.add(at(7), at(7), weight=2),
        lambda: blind.balancer.set_weights({at(0): 2}),
    ):
        with pytest.raises(InputError, match="The policy jsq ignores weights; use threshold, "):
            change()
    assert [pool.weight for pool in blind.balancer.pools] == [1, 1]


# --- the settings file -----------------------------------------------------------------------------------------


def reloaded(scene: Scene, before: Settings, path: Path, pools: Sequence[str]) -> tuple[Settings, dict[str, Any]]:
    """Return the settings in force after a change of the file, and the last line of the log."""
    path.write_text(f"pool = {json.dumps(pools)}\n")
    log = io.StringIO()
    file = SettingsFile(path, None, GIVEN, scene.balancer, Log(log))
    after, _ = asyncio.run(file._changed(before))
    return after, json.loads(log.getvalue().splitlines()[-1])


def test_a_changed_file_changes_weights(tmp_path: Path) -> None:
    scene, path = Scene([1, 1]), tmp_path / "evenly.toml"
    scene.open(10)
    settings = read_settings({**GIVEN, "pool": [str(at(0)), str(at(1))]}, None)
    scene.balancer.add(at(2), at(2))  # at the admin port
    settings, line = reloaded(scene, settings, path, [f"{at(0)}=4", str(at(1)), f"{at(2)}=3", f"{at(3)}=2"])
    assert {pool.address: pool.weight for pool in scene.balancer.pools} == {at(0): 4, at(1): 1, at(2): 3, at(3): 2}
    assert (line["event"], line["added"], line["reweighted"]) == (
        "settings read",
        [str(at(2)), str(at(3))],
        [str(at(0))],
    )
    assert scene.sessions() == [5, 5]
    for bad in ("0", "-1", "nan", "inf", "1e9", "4x", ""):
        same, line = reloaded(scene, settings, path, [f"{at(0)}={bad}"])
        assert same == settings
        assert line["event"] == "settings not used"
        assert line["reason"].startswith(f"The weight of pool {at(0)} must be a number from 0.001 to 1000, not ")
    assert scene.pools[0].weight == 4


def test_a_changed_file_cannot_change_the_protocol_of_the_pools(tmp_path: Path) -> None:
    """Envoy learned it when it started."""
    before = read_settings({**GIVEN, "pool": [str(at(0))]}, None)
    after, line = reloaded(Scene([1]), before, tmp_path / "evenly.toml", [f"h2://{at(0)}"])
    assert after == before
    assert line["reason"] == "Restart to change the protocol of the pools from http to h2."


def test_a_running_policy_that_ignores_weights_refuses_those_of_a_changed_file(tmp_path: Path) -> None:
    """The file has another policy too, which takes effect at the next start."""
    scene = Scene([1, 1], name="jsq", policy=make_policy("jsq"))
    before = read_settings({**GIVEN, "pool": [str(at(0)), str(at(1))], "policy": "jsq"}, None)
    after, _ = reloaded(scene, before, tmp_path / "evenly.toml", [f"{at(0)}=4", str(at(1)), f"{at(2)}=4"])
    assert [pool.weight for pool in scene.balancer.pools] == [1, 1]
    assert after.pool == before.pool


# --- the admin port --------------------------------------------------------------------------------------------


@pytest.fixture
def scene() -> Scene:
    made = Scene([1, 4])
    made.open(10)
    return made


class Port:
    """The admin port of a balancer, without a socket."""

    def __init__(self, balancer: Balancer) -> None:
        from evenly.live.admin.app import admin_app

        async def resolve(address: Address) -> Address:
            return address

        self._app = admin_app(
            balancer=balancer,
            latency=Latency(),
            envoys=list,
            token=None,
            bound=at(0),
            resolve=resolve,
            ready=lambda: True,
            publish=lambda: None,
            feed=Feed(BalancerSource(balancer, list), Log(None)),
        )

    def ask(self, method: str, path: str, body: str | None = None) -> httpx.Response:
        async def response() -> httpx.Response:
            transport = httpx.ASGITransport(app=self._app)
            headers = {} if body is None else {"content-type": "application/json"}
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, content=body, headers=headers)

        return asyncio.run(response())


@pytest.fixture
def port(scene: Scene) -> Port:
    return Port(scene.balancer)


def test_the_state_has_weights_and_a_threshold_for_each(scene: Scene, port: Port) -> None:
    state = StateView.model_validate(port.ask("GET", "/state").json())
    assert [(pool.sessions, pool.weight) for pool in state.pools] == [(2, 1), (8, 4)]
    assert [each.model_dump() for each in state.classes] == [
        {"weight": 1, "pools": 1, "threshold": 2},
        {"weight": 4, "pools": 1, "threshold": 8},
    ]
    assert (state.policy, state.threshold) == ("threshold-utility", 2)
    metrics = port.ask("GET", "/metrics").text
    assert f'evenly_pool_weight{{pool="{at(1)}"}} 4.0' in metrics
    assert 'evenly_class_threshold{weight="4"} 8.0' in metrics
    jsq = Scene([1], name="jsq", policy=make_policy("jsq"))
    assert "evenly_class_threshold" not in "".join(balancer_metrics(jsq.balancer, Latency()))


def test_weights_can_be_given_and_changed_at_the_admin_port(scene: Scene, port: Port) -> None:
    answer = port.ask("POST", "/pools", f'{{"address": "{at(2)}", "weight": 2}}')
    assert (answer.status_code, answer.json()["weight"]) == (201, 2)
    assert port.ask("POST", "/pools", f'{{"address": "{at(3)}"}}').json()["weight"] == 1
    answer = port.ask("PUT", f"/pools/{at(0)}/weight", '{"weight": 2.5}')
    assert (answer.status_code, answer.json()["weight"], answer.json()["sessions"]) == (200, 2.5, 2)
    assert scene.pools[0].weight == 2.5
    assert port.ask("PUT", f"/pools/{at(9)}/weight", '{"weight": 2}').status_code == 404


def test_a_bad_weight_is_refused_at_the_admin_port(scene: Scene, port: Port) -> None:
    for weight in ["0", "-1", "1e9", "NaN", "Infinity", "1e400", '"4"', "true", "null", "[4]"]:
        for answer in (
            port.ask("POST", "/pools", f'{{"address": "{at(2)}", "weight": {weight}}}'),
            port.ask("PUT", f"/pools/{at(0)}/weight", f'{{"weight": {weight}}}'),
        ):
            assert answer.status_code == 422
            assert "weight" in answer.json()["detail"]
            assert answer.json()["detail"].count("\n") == 0
        assert [pool.weight for pool in scene.balancer.pools] == [1, 4]


# --- the command line, and Envoy -------------------------------------------------------------------------------


def test_a_bad_weight_is_refused_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    bad = ["0", "-1", "nan", "inf", "1e9", "1e-9", "x", "", "1=2", "٤", "1_0", "0x4", " 4"]
    for command, weights in (("picker", bad), ("gateway", bad[:1]), ("envoy-config", bad[:1])):
        for weight in weights:
            words = [command, "--listen", "127.0.0.1:0", f"--pool=[::1]:80={weight}"]
            assert main(words + ["--picker", "127.0.0.1:4000"] * (command == "envoy-config")) == 2
            out, error = capsys.readouterr()
            assert (out, error.count("\n")) == ("", 1)
            assert error.startswith(
                "evenly: The weight of pool [::1]:80 must be a number from 0.001 to 1000, not "
            )


def test_envoy_gets_whole_weights_only_if_they_differ() -> None:
    assert endpoint_weights([]) == []
    assert endpoint_weights([0.3, 0.3]) == [None, None]
    assert endpoint_weights([1, 4, 2.5]) == [25_000, 100_000, 62_500]
    assert endpoint_weights([0.001, 1000]) == [1, 100_000]


def test_an_envoy_with_a_fixed_list_gets_the_weights(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["envoy-config", "--picker", "127.0.0.1:4000", "--listen", "127.0.0.1:8080"]
    assert main([*words, "--pool", "127.0.0.1:1=1", "--pool", "[::1]:2=4"]) == 0
    clusters = json.loads(capsys.readouterr().out)["static_resources"]["clusters"]
    for cluster in clusters[:2]:
        [locality] = cluster["load_assignment"]["endpoints"]
        assert [each["load_balancing_weight"] for each in locality["lb_endpoints"]] == [25_000, 100_000]
    assert main([*words, "--pool", "127.0.0.1:1=4", "--pool", "[::1]:2=4"]) == 0
    assert "load_balancing_weight" not in capsys.readouterr().out
