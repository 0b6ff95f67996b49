"""Settings from options and files: what is taken, what is refused and with which sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenly.cli.main import main
from evenly.core import JoinShortestQueue, PowerOfD, RandomRouting, ThresholdPolicy
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.picker.state_file import KnownPool, PickerState, load, save
from evenly.live.settings import new_policy, read_settings

GIVEN: dict[str, Any] = {"listen": "127.0.0.1:80", "pool": ["127.0.0.1:1", "h:2"]}
A, B, C = (Address("127.0.0.1", port) for port in (1, 2, 3))


def test_options_alone() -> None:
    settings = read_settings(GIVEN, None)
    assert settings.listen == Address("127.0.0.1", 80)
    assert settings.pool == (A, Address("h", 2))
    assert (settings.policy, settings.alpha, settings.admin) == ("threshold", None, Address("127.0.0.1", 0))


def test_options_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "evenly.toml"
    file.write_text(
        'listen = "127.0.0.1:81"\npool = ["127.0.0.1:3"]\nalpha = 0.57\nslow_start = 3\nhealth_path = "/up"\n'
    )
    settings = read_settings({"listen": "127.0.0.1:80"}, file)
    assert (settings.listen.port, settings.pool, settings.alpha) == (80, (C,), "0.57")
    assert (settings.slow_start, settings.health_path) == (3.0, "/up")
    assert read_settings({**GIVEN, "pool": ["127.0.0.1:2"]}, file).pool == (B,)


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


@pytest.mark.parametrize("names", [("--sample-size", "--drain-timeout"), ("--choices", "--drain")])
def test_options_have_their_old_names_too(names: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Values that are refused show that they arrive."""
    start = ["gateway", "--listen", "127.0.0.1:0", "--pool", "127.0.0.1:9"]
    assert main([*start, "--policy", "power-of-d", names[0], "0"]) == 2
    assert "sample-size must be greater than or equal to 1, not 0." in capsys.readouterr().err
    assert main([*start, names[1], "-1"]) == 2
    assert "drain-timeout must be greater than or equal to 0, not -1.0." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["--state-file", "--state"])
def test_the_state_file_has_its_old_name_too(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--listen", "127.0.0.1:0", "--pool", "127.0.0.1:9", name, "/no/such/folder/state.json"]
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
        ({**GIVEN, "pool": ["a:99999"]}, "'a:99999'"),
        ({**GIVEN, "pool": ["a:0"]}, "at least 1"),
        ({**GIVEN, "pool": ["a:1", "a:1"]}, "a:1 is given twice"),
        ({**GIVEN, "policy": "fastest"}, "policy must be one of threshold, .*not 'fastest'"),
        ({**GIVEN, "alpha": "1.5"}, "strictly between 0 and 1, not 1.5"),
        ({**GIVEN, "alpha": "0.5", "load_max": 3.0}, "Give alpha or load-max, not both"),
        ({**GIVEN, "policy": "jsq", "alpha": "0.5"}, "not jsq"),
        ({**GIVEN, "load_max": -1.0}, "load-max must be greater than 0, not -1"),
        ({**GIVEN, "load_max": float("nan")}, "load-max"),
        ({**GIVEN, "sample_size": 3}, "sample_size is for policy power-of-d, not threshold"),
        ({**GIVEN, "choices": 3}, "sample_size is for policy power-of-d, not threshold"),
        ({**GIVEN, "choices": 3, "sample_size": 3}, "sample_size or its old name choices, not both"),
        ({**GIVEN, "drain": 3, "drain_timeout": 3}, "drain_timeout or its old name drain, not both"),
        ({**GIVEN, "policy": "power-of-d", "sample_size": 0}, "sample-size must be .* equal to 1, not 0"),
        ({**GIVEN, "slow_start": -1.0}, "slow-start"),
        ({**GIVEN, "drain_timeout": float("inf")}, "drain-timeout"),
        ({**GIVEN, "health_path": "up"}, "health-path must .*'up'"),
        ({**GIVEN, "admin_token_file": 5}, "admin-token-file must be the name of a file, not 5"),
        ({**GIVEN, "load_max": True}, "load-max must be .*True"),
        ({**GIVEN, "health_path": "/a b"}, "health-path must .*'/a b'"),
    ],
)
def test_bad_input_gets_one_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_settings(given, None)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pools = []", "unknown key 'pools': did you mean pool?"),
        ("zzz = 1", "unknown key 'zzz': known are listen, pool"),
        ("listen = ", "is not TOML"),
        ('pool = "a:1"\nlisten = "b:2"', "pool must be"),
        ('pool = ["a:1"]\nlisten = 80', "HOST:PORT.*'80'"),
        ('pool = ["a:1"]\nlisten = "a:80"\nalpha = true', "alpha must .*True"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "evenly.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        read_settings({}, file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_settings(GIVEN, tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("threshold", ThresholdPolicy),
        ("jsq", JoinShortestQueue),
        ("power-of-d", PowerOfD),
        ("random", RandomRouting),
    ],
)
def test_policies_by_name(name: str, kind: type) -> None:
    assert isinstance(new_policy(read_settings({**GIVEN, "policy": name}, None)), kind)


@pytest.mark.parametrize(
    ("given", "found", "alpha"), [({}, None, 0.5), ({}, "0.65", 0.65), ({"alpha": "0.9"}, "0.65", 0.9)]
)
def test_alpha_is_what_was_said_else_what_was_found_else_provisional(
    given: dict[str, Any], found: str | None, alpha: float
) -> None:
    policy = new_policy(read_settings({**GIVEN, **given}, None), alpha=found)
    assert isinstance(policy, ThresholdPolicy)
    assert policy.dispatcher.rule is not None
    assert float(policy.dispatcher.rule.alpha) == alpha


def test_memory_keeps_changes_made_by_hand_and_heeds_changes_of_the_settings(tmp_path: Path) -> None:
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
    assert back.pools_now((A, B)) == by_hand.pools  # A was removed by hand, and stays away
    new = Address("127.0.0.1", 4)
    changed = back.pools_now((A, new))  # B left the settings, and may have sessions yet; `new` came
    assert [(pool.address, pool.leaving) for pool in changed] == [(B, True), (C, True), (new, False)]
    back_again = back.pools_now((A, B, C))
    assert [(pool.address, pool.leaving) for pool in back_again] == [(B, False), (C, False)]
    assert [pool.draining for pool in back_again] == [True, False]  # C was listed again: it is wanted


@pytest.mark.parametrize(
    "given",
    [
        {"policy": "threshold", "alpha": "0.57"},
        {"policy": "threshold", "load_max": 7},
        {"policy": "power-of-d", "sample_size": 3},
        {"policy": "jsq", "admin_token_file": "token.txt", "admin": "0.0.0.0:99"},
        {"policy": "random", "health_path": "/up", "slow_start": 0, "drain_timeout": 2.5, "admin": "[::1]:99"},
    ],
    ids=lambda given: given["policy"],
)
def test_memory_brings_all_settings_back(tmp_path: Path, given: dict[str, Any]) -> None:
    memory = PickerState(settings=read_settings({**GIVEN, **given}, None), pools=[])
    save(tmp_path / "state.json", memory)
    assert load(tmp_path / "state.json") == memory
    again = memory.settings.model_dump(mode="json", exclude_none=True)
    assert read_settings(again, None) == memory.settings


@pytest.mark.parametrize("text", ["", "{}", '{"configured": ["x"], "pools": []}', "[1]"])
def test_a_state_file_of_somebody_else_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "state.json"
    file.write_text(text)
    with pytest.raises(InputError, match="not a file that a picker wrote"):
        load(file)
