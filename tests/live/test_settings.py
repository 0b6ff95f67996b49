"""Settings from options and files: which values are accepted, and how the others are rejected."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from evenly.cli.main import main
from evenly.core import (
    GreedyUtility,
    JoinShortestQueue,
    PowerOfD,
    RandomRouting,
    ThresholdPolicy,
    UtilityThreshold,
    WeightedLeast,
)
from evenly.errors import InputError
from evenly.live.addresses import MAX_POOLS, MAX_WEIGHTS, Address, WeightedPool
from evenly.live.gateway.resources import bound_to, reserved_admin
from evenly.live.listening import listening_socket
from evenly.live.picker.admin_port import admin_socket
from evenly.live.picker.state_file import MAX_BYTES, KnownPool, PickerState, load, save
from evenly.live.settings import new_policy, read_settings
from evenly.live.store_url import parse_store_url

GIVEN: dict[str, Any] = {"listen": "127.0.0.1:80", "pool": ["127.0.0.1:1", "h:2"]}
A, B, C = (Address("127.0.0.1", port) for port in (1, 2, 3))


def pools(*addresses: Address) -> list[WeightedPool]:
    return [WeightedPool(address) for address in addresses]


def test_options_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "evenly.toml"
    file.write_text(
        'listen = "127.0.0.1:81"\npool = ["127.0.0.1:3"]\nalpha = 0.57\nslow_start = 3\nhealth_path = "/up"\n'
    )
    settings = read_settings({"listen": "127.0.0.1:80"}, file)
    assert (settings.listen.port, settings.pool, settings.alpha) == (80, (WeightedPool(C),), "0.57")
    assert (settings.slow_start, settings.health_path) == (3.0, "/up")
    assert read_settings({**GIVEN, "pool": ["127.0.0.1:2"]}, file).pool == (WeightedPool(B),)


def test_the_admin_port_is_the_given_one_else_the_usual_one_else_any() -> None:
    usual, free = Address("127.0.0.1", 8081), Address("127.0.0.1", 0)
    given = read_settings(GIVEN | {"admin": "127.0.0.1:8082"}, None)
    assert (given.admin_given, given.admin_choices) == (True, (Address("127.0.0.1", 8082),))
    assert read_settings(GIVEN | {"admin": "127.0.0.1:0"}, None).admin_choices == (free,)
    settings = read_settings(GIVEN, None)
    assert (settings.admin_given, settings.admin_choices) == (False, (usual, free))
    for taken in ({"listen": "0.0.0.0:8081"}, {"pool": ["127.0.0.1:8081"]}):
        assert read_settings(GIVEN | taken, None).admin_choices == (free,)
    with pytest.raises(InputError, match="must have different ports"):
        read_settings(GIVEN | {"listen": "0.0.0.0:8081", "admin": "127.0.0.1:8081"}, None)


def test_an_admin_port_has_one_owner_although_nothing_listens_there_yet() -> None:
    """Two gateways that start together must not share it."""
    free = Address("127.0.0.1", 0)
    with reserved_admin([free]) as first:
        taken = bound_to(first)
        with pytest.raises(InputError, match=f"Cannot listen on {taken}: address already in use"):
            reserved_admin([taken]).__enter__()
        with reserved_admin([taken, free]) as second:
            assert bound_to(second).port not in {0, taken.port}
        with listening_socket(taken, shared=True), reserved_admin([taken, free]) as third:
            assert bound_to(third).port != taken.port
    with reserved_admin([taken]) as again:
        assert bound_to(again) == taken
    with listening_socket(taken), admin_socket([taken, free], None) as other:
        assert bound_to(other).port != taken.port


def test_a_store_is_read_from_options_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "evenly.toml"
    file.write_text('store = "rediss://user:secret@store.example/1"\nfleet = "red"\n')
    settings = read_settings(GIVEN, file)
    assert (settings.store, settings.fleet) == ("rediss://user:secret@store.example/1", "red")
    assert (read_settings(GIVEN, None).store, read_settings(GIVEN, None).fleet) == (None, "default")
    assert read_settings({**GIVEN, "store": "redis://h", "fleet": "blue"}, file).fleet == "blue"
    assert "secret" not in repr(settings)
    assert "secret" not in PickerState(settings=settings, pools=[]).model_dump_json()


def test_a_store_that_is_none_is_refused_without_its_password() -> None:
    for store in [
        *(
            "",
            "h:6379",
            "http://h",
            "redis://",
            "redis://h:0",
            "redis://h:x",
            "redis://h/a",
            "redis://h/-1",
            "redis://[",
        ),
        *(
            "redis://h?ssl_cert_reqs=none",
            "redis://h#x",
            "redis:///1",
            "redis://h/99999999",
            "redis://" + 2000 * "h",
        ),
        "http://user:secret@h",
        "redis://user:secret@h:port",
        "redis://user:sec@ret@h/x",
    ]:
        with pytest.raises(InputError, match=r"^store must be redis://HOST:PORT or, with TLS") as caught:
            read_settings({**GIVEN, "store": store}, None)
        assert "sec" not in str(caught.value)


def test_a_fleet_needs_a_plain_name() -> None:
    rows: list[object] = ["", "a b", "{x}", "x" * 65, "ä", 5]
    for fleet in rows:
        with pytest.raises(InputError, match="fleet must be 1 to 64 letters"):
            read_settings({**GIVEN, "fleet": fleet}, None)


def test_a_store_url_is_taken_apart() -> None:
    url = parse_store_url("rediss://me:p%40ss@[::1]:7000/3")
    assert (url.host, url.port, url.database, url.tls) == ("::1", 7000, 3, True)
    assert (url.username, url.password) == ("me", "p@ss")
    assert str(url) == "rediss://[::1]:7000/3"
    assert "p@ss" not in repr(url)
    plain = parse_store_url("redis://h")
    assert (plain.port, plain.database, plain.tls, plain.username, plain.password) == (6379, 0, False, None, None)


def test_old_names_of_keys_are_taken(tmp_path: Path) -> None:
    """From options, from a file, and a new name on the command line wins over the old one in the file."""
    old = {**GIVEN, "policy": "power-of-d", "choices": 3, "drain": 4.0}
    new = {**GIVEN, "policy": "power-of-d", "sample_size": 3, "drain_timeout": 4.0}
    assert read_settings(old, None) == read_settings(new, None)
    file = tmp_path / "evenly.toml"
    for text in ("choices = 3\ndrain = 4.0\n", "sample_size = 3\ndrain_timeout = 4.0\n"):
        file.write_text(f'policy = "power-of-d"\n{text}')
        assert read_settings(GIVEN, file) == read_settings(new, None)
        assert read_settings({**GIVEN, "drain_timeout": 5.0}, file).drain_timeout == 5.0
        assert read_settings({**GIVEN, "drain": 5.0}, file).drain_timeout == 5.0


def test_both_names_of_a_key_in_a_file_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "evenly.toml"
    file.write_text("drain = 4.0\ndrain_timeout = 4.0\n")
    with pytest.raises(InputError, match=r"toml must have drain_timeout or its old name drain, not both\."):
        read_settings(GIVEN, file)


def test_options_have_their_old_names_too(capsys: pytest.CaptureFixture[str]) -> None:
    """A rejected value shows that it arrived."""
    start = ["gateway", "--listen", "127.0.0.1:0", "--pool", "127.0.0.1:9"]
    assert main([*start, "--policy", "power-of-d", "--choices", "0"]) == 2
    assert "sample-size must be a whole number from 1 to 1000, not 0." in capsys.readouterr().err
    assert main([*start, "--drain", "-1"]) == 2
    assert "drain-timeout must be a number from 0 to 86400, not -1.0." in capsys.readouterr().err


def test_the_state_file_has_its_old_name_too(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--listen", "127.0.0.1:0", "--pool", "127.0.0.1:9", "--state", "/no/such/folder/state.json"]
    assert main(["picker", *options]) == 2
    assert "Cannot write /no/such/folder/state.json" in capsys.readouterr().err


def test_a_state_file_with_old_names_is_read(tmp_path: Path) -> None:
    """As an older version wrote it."""
    settings = read_settings({**GIVEN, "policy": "power-of-d", "sample_size": 3, "drain_timeout": 4.0}, None)
    text = PickerState(settings=settings, pools=[]).model_dump_json()
    file = tmp_path / "state.json"
    file.write_text(text.replace('"sample_size"', '"choices"').replace('"drain_timeout"', '"drain"'))
    assert '"choices"' in file.read_text()
    assert '"drain"' in file.read_text()
    back = load(file)
    assert back is not None
    assert back.settings == settings


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pool": ["a:1"]}, "--listen"),
        ({"listen": "127.0.0.1:80"}, "at least one pool"),
        ({**GIVEN, "listen": "nowhere"}, "HOST:PORT.*'nowhere'"),
        ({**GIVEN, "pool": ["a:1", "A:1"]}, "a:1 is given twice"),
        ({**GIVEN, "pool": ["127.0.0.1:80"]}, "listen must not be the address of a pool, 127.0.0.1:80"),
        ({**GIVEN, "admin": "127.0.0.1:1"}, "admin must not be the address of a pool, 127.0.0.1:1"),
        ({**GIVEN, "admin": "0.0.0.0:80"}, "listen and admin must have different ports"),
        ({**GIVEN, "policy": "fastest"}, "policy must be one of threshold, .*not 'fastest'"),
        ({**GIVEN, "alpha": "1.5"}, "strictly between 0 and 1, not 1.5"),
        ({**GIVEN, "alpha": "0.5", "load_max": 3.0}, "Give alpha or load-max, not both"),
        ({**GIVEN, "policy": "jsq", "alpha": "0.5"}, "not jsq"),
        ({**GIVEN, "load_max": -1.0}, "load-max must be a positive number of at most 1000, not -1.0"),
        ({**GIVEN, "load_max": "x"}, "load-max must .*not 'x'"),
        ({**GIVEN, "sample_size": 3}, "sample_size is for policy power-of-d, not threshold"),
        ({**GIVEN, "choices": 3, "sample_size": 3}, "sample_size or its old name choices, not both"),
        (
            {**GIVEN, "policy": "power-of-d", "sample_size": 0},
            "sample-size must be a whole number from 1 to 1000, not 0",
        ),
        ({**GIVEN, "slow_start": -1.0}, "slow-start must be a number from 0 to 86400, not -1.0"),
        ({**GIVEN, "slow_start": "x" * 10**6}, "slow-start must be a number from 0 to 86400, not 'xxx"),
        ({**GIVEN, "drain_timeout": float("inf")}, "drain-timeout must .*not inf"),
        ({**GIVEN, "health_path": "up"}, "health-path must .*'up'"),
        ({**GIVEN, "admin_token_file": ""}, "admin-token-file must be the name of a file, not ''"),
        ({**GIVEN, "load_max": True}, "load-max must be .*True"),
    ],
)
def test_bad_input_gets_one_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_settings(given, None)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pools = []", "unknown key 'pools': did you mean pool?"),
        ("zzz = 1", "unknown key 'zzz': known are listen, pool"),
        ("listen = ", "is not a TOML file"),
        ("x = " + "[" * 100_000, "is not a TOML file"),
        ("slow_start = " + "9" * 4000, "slow-start must be a number from 0 to 86400, not 9999"),
        ("slow_start = 1979-05-27", "slow-start must .*not datetime.date"),
        ("[listen]\nx = 1", "An address must be text .*not {'x': 1}"),
        ('"' + "k" * 100_000 + '" = 1', "unknown key 'kkk"),
        ('pool = [80]\nlisten = "a:80"', "An address must be text .*not 80"),
        ('pool = ["a:1"]\nlisten = "a:80"\nalpha = true', "alpha must .*True"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "evenly.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_settings({"listen": "127.0.0.1:80"} if "listen" not in text else {}, file)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_settings(GIVEN, tmp_path / "none.toml")
    with pytest.raises(InputError, match="is a directory"):
        read_settings(GIVEN, tmp_path)
    with pytest.raises(InputError, match="file name too long"):
        read_settings(GIVEN, tmp_path / ("x" * 1000))
    (tmp_path / "latin.toml").write_bytes(b"policy = '\xff'")
    with pytest.raises(InputError, match="not UTF-8"):
        read_settings(GIVEN, tmp_path / "latin.toml")
    with (tmp_path / "large.toml").open("wb") as large:
        large.truncate(2**40)  # without content on the disk
    with pytest.raises(InputError, match="more than 1000000 bytes"):
        read_settings(GIVEN, tmp_path / "large.toml")
    os.mkfifo(tmp_path / "pipe")
    for special in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="more than once: it is not a regular file"):
            read_settings(GIVEN, special)


def test_policies_by_name() -> None:
    rows: list[tuple[str, type]] = [
        ("threshold", ThresholdPolicy),
        ("jsq", JoinShortestQueue),
        ("power-of-d", PowerOfD),
        ("random", RandomRouting),
        ("threshold-utility", UtilityThreshold),
        ("greedy-utility", GreedyUtility),
        ("weighted-least", WeightedLeast),
    ]
    for name, kind in rows:
        assert isinstance(new_policy(read_settings({**GIVEN, "policy": name}, None)), kind)


@pytest.mark.parametrize(
    ("given", "found", "alpha"), [({}, None, 0.5), ({}, "0.65", 0.65), ({"alpha": "0.9"}, "0.65", 0.9)]
)
def test_alpha_is_the_one_given_else_the_recommended_else_a_provisional_one(
    given: dict[str, Any], found: str | None, alpha: float
) -> None:
    policy = new_policy(read_settings({**GIVEN, **given}, None), alpha=found)
    assert isinstance(policy, ThresholdPolicy)
    assert policy.dispatcher.rule is not None
    assert float(policy.dispatcher.rule.alpha) == alpha


def test_weights_come_from_options_and_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "evenly.toml"
    file.write_text('pool = ["127.0.0.1:1=4", "[::1]:2=0.5", "h:3=1", "h:4"]\n')
    settings = read_settings({"listen": "127.0.0.1:80"}, file)
    assert [pool.weight for pool in settings.pool] == [4, 0.5, 1, 1]
    assert [str(pool) for pool in settings.pool] == ["127.0.0.1:1=4", "[::1]:2=0.5", "h:3", "h:4"]
    assert read_settings({**GIVEN, "pool": ["127.0.0.1:1=1e-2"]}, file).pool == (WeightedPool(A, 0.01),)
    assert type(settings).model_validate_json(settings.model_dump_json()) == settings


def test_a_policy_that_ignores_weights_is_refused_with_weights() -> None:
    read_settings({**GIVEN, "policy": "jsq", "pool": ["h:1=1", "h:2=1.0"]}, None)
    with pytest.raises(InputError) as caught:
        read_settings({**GIVEN, "policy": "jsq", "pool": ["h:1", "h:2=4"]}, None)
    assert str(caught.value) == (
        "The policy jsq ignores weights; use threshold, greedy-utility, threshold-utility or "
        "weighted-least, or leave out the weights."
    )


def test_there_are_at_most_64_different_weights() -> None:
    many = [f"h:{number}={number}" for number in range(1, MAX_WEIGHTS + 1)]
    read_settings({**GIVEN, "pool": [*many, "h:999=7"]}, None)
    with pytest.raises(InputError, match=r"at most 64 different weights, not 65: round them"):
        read_settings({**GIVEN, "pool": [*many, "h:999=0.5"]}, None)


def test_a_state_file_keeps_weights_set_at_run_time_and_follows_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    settings = read_settings({**GIVEN, "pool": [f"{A}=2", f"{B}=2"]}, None)
    known = [KnownPool(address=A, weight=3.0), KnownPool(address=B, weight=2.0), KnownPool(address=C, weight=7.0)]
    save(file, PickerState(settings=settings, pools=known))
    back = load(file)
    assert back is not None

    def weights(*configured: WeightedPool) -> dict[Address, float]:
        return {pool.address: pool.weight for pool in back.pools_now(configured)}

    assert weights(WeightedPool(A, 2.0), WeightedPool(B, 2.0)) == {A: 3, B: 2, C: 7}  # nothing has changed
    assert weights(WeightedPool(A, 4.0), WeightedPool(B, 5.0)) == {A: 4, B: 5, C: 7}
    assert weights(WeightedPool(A, 2.0), WeightedPool(B, 2.0), WeightedPool(C, 1.0)) == {A: 3, B: 2, C: 1}
    new = Address("127.0.0.1", 4)
    assert weights(WeightedPool(new, 6.0)) == {A: 3, B: 2, C: 7, new: 6}
    text = file.read_text().replace('"weight":3.0', '"weight":-3.0')
    file.write_text(text)
    with pytest.raises(InputError, match="not a file that a picker wrote"):
        load(file)


def test_a_state_file_keeps_changes_made_at_run_time_and_follows_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    assert load(file) is None
    settings = read_settings({**GIVEN, "pool": [str(A), str(B)], "health_path": "/up"}, None)
    by_hand = PickerState(
        settings=settings,
        pools=[
            KnownPool(address=B, draining=True),
            KnownPool(address=C, endpoint=C, draining=True, leaving=True),
        ],
        alpha="0.6",
    )
    save(file, by_hand)
    back = load(file)
    assert back == by_hand
    assert back is not None
    assert back.pools_now(pools(A, B)) == by_hand.pools  # A was removed at run time, and stays away
    new = Address("127.0.0.1", 4)
    changed = back.pools_now(pools(A, new))  # B left the settings but may still have sessions; `new` is new
    assert [(pool.address, pool.leaving) for pool in changed] == [(B, True), (C, True), (new, False)]
    back_again = back.pools_now(pools(A, B, C))
    assert [(pool.address, pool.leaving) for pool in back_again] == [(B, False), (C, False)]
    assert [pool.draining for pool in back_again] == [True, False]  # C was listed again, so it gets sessions


def test_a_state_file_restores_all_settings(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"policy": "threshold", "load_max": 7},
        {"policy": "jsq", "admin_token_file": "token.txt", "admin": "0.0.0.0:99"},
        {"policy": "random", "health_path": "/up", "slow_start": 0, "drain_timeout": 2.5, "admin": "[::1]:99"},
    ]
    for given in rows:
        memory = PickerState(settings=read_settings({**GIVEN, **given}, None), pools=[])
        save(tmp_path / "state.json", memory)
        assert load(tmp_path / "state.json") == memory
        again = memory.settings.model_dump(mode="json", exclude_none=True)
        assert read_settings(again, None) == memory.settings


_SETTINGS = '{"settings": {"listen": "127.0.0.1:80", "pool": ["127.0.0.1:1"]}, '


def test_a_file_that_is_not_a_state_file_is_rejected(tmp_path: Path) -> None:
    for text in [
        "",
        "{}",
        '{"configured": ["x"], "pools": []}',
        "[1]",
        "[" * 100_000,
        _SETTINGS + '"pools": [{"address": "127.0.0.1:1"}, {"address": "127.0.0.1:1"}]}',
        _SETTINGS + '"pools": [{"address": "256.0.0.1:1"}]}',
        _SETTINGS + '"pools": [], "alpha": "nan"}',
        _SETTINGS + '"pools": [], "alpha": 5}',
    ]:
        file = tmp_path / "state.json"
        file.write_text(text)
        with pytest.raises(InputError, match="not a file that a picker wrote"):
            load(file)


def test_a_state_file_has_room_for_the_most_and_longest_pools(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    name = ".".join(["x" * 62] * 4)
    pools = [Address(name, 1 + number) for number in range(MAX_POOLS)]
    endpoint = Address("1000:1000:1000:1000:1000:1000:1000:1000", 65535)
    settings = read_settings(
        {"listen": "127.0.0.1:80", "pool": [WeightedPool(each, 0.123456789) for each in pools]}, None
    )
    state = PickerState(
        settings=settings, pools=[KnownPool(address=each, endpoint=endpoint, weight=0.123456789) for each in pools]
    )
    save(file, state)
    assert 2 * file.stat().st_size < MAX_BYTES
    assert load(file) == state


def test_a_state_file_that_is_too_large_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    with file.open("wb") as large:
        large.truncate(2**40)  # without content on the disk
    with pytest.raises(InputError, match="more than 16000000 bytes"):
        load(file)
