"""Settings of a dispatcher: from options and from files, and how bad ones are rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.dispatcher.settings import read_dispatcher_settings, read_tokens
from tests.live.dispatcher.rig import refused


def test_defaults() -> None:
    settings = read_dispatcher_settings({}, None)
    assert settings.listen == Address("127.0.0.1", 4100)
    assert settings.admin == Address("127.0.0.1", 0)
    assert (settings.heartbeat, settings.lease, settings.silence) == (2.0, 10.0, 8.0)
    assert (settings.store, settings.fleet, settings.open_picks) == (None, "default", False)
    fleet = settings.for_fleet()
    assert (fleet.lease, fleet.memory, fleet.silence, fleet.heartbeat) == (10.0, 10.0, 8.0, 2.0)
    assert read_tokens(settings, {}).agent is None


def test_options_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "dispatcher.toml"
    file.write_text(
        'listen = "127.0.0.1:81"\nalpha = 0.57\nheartbeat = 1\nlease = 5\nfleet = "games"\nopen_picks = true\n'
        'agent_token_file = "agent"\n'
    )
    settings = read_dispatcher_settings({"listen": "127.0.0.1:80"}, file)
    assert (settings.listen.port, settings.alpha, settings.fleet) == (80, "0.57", "games")
    assert (settings.heartbeat, settings.lease, settings.open_picks) == (1.0, 5.0, True)
    assert settings.agent_token_file == Path("agent")


def test_bad_settings_are_rejected_in_one_sentence() -> None:
    rows: list[tuple[dict[str, Any], str]] = [
        ({"listen": "x"}, "HOST:PORT"),
        ({"listen": "127.0.0.1:80", "admin": "127.0.0.1:80"}, "listen and admin must have different ports"),
        ({"heartbeat": 0}, "heartbeat must be a number from 0.05 to 60, not 0"),
        ({"lease": 3}, "lease must be at least two heartbeats, 4 seconds, not 3"),
        ({"lease": 3601}, "lease must be a number from 0.1 to 3600"),
        ({"alpha": "2"}, "alpha"),
        ({"alpha": "0.5", "load_max": 5.0}, "alpha or load-max, not both"),
        ({"load_max": -1}, "load-max must be"),
        ({"store": ""}, "store must be redis://"),
        ({"fleet": "a b"}, "fleet must be"),
        ({"open_picks": "yes"}, "open-picks must be true or false"),
        ({"tls_key": "x"}, "tls-cert and tls-key together"),
        ({"policy": "random"}, "policy"),
    ]
    for given, message in rows:
        with pytest.raises(InputError, match=message) as error:
            read_dispatcher_settings(given, None)
        assert str(error.value).endswith(".")
        assert "\n" not in str(error.value)


def test_unknown_keys_of_a_file_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "dispatcher.toml"
    file.write_text("hartbeat = 1\n")
    with pytest.raises(InputError, match=r"unknown key 'hartbeat': did you mean heartbeat\?"):
        read_dispatcher_settings({}, file)


def test_the_command_line_names_its_options() -> None:
    assert "--lease must be at least two heartbeats" in refused("--lease=1")
    assert "--heartbeat must be a number" in refused("--heartbeat=x")
    assert "--fleet must be 1 to 64" in refused("--fleet=a b")
    assert "store" in refused("--listen=127.0.0.1:0", "--store=nonsense")
