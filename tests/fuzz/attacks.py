"""Hostile invocations of the command line: every option of every command, with values that no user should pass.

The options come from the command line itself, so a new option is attacked without being listed here.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from evenly.cli.main import app
from tests.fuzz.values import ADDRESSES, LAWS, NUMBERS, PATHS, SCHEDULES, TEXTS, WORDS

_PLANNED = "only planned"  # never left out: a sweep may be as long as its user likes
# One valid, quick invocation per command: what an attack starts from.
BASES: dict[str, dict[str, str]] = {
    "simulate": {"--pools": "5", "--load": "1.5", "--horizon": "5"},
    "compare": {"--pools": "5", "--load": "1.5", "--horizon": "5"},
    "sweep": {"--pools": "5,6", "--load": "1.5:2.5:0.5", "--horizon": "5", _PLANNED: "--dry-run"},
    "exact": {"--pools": "2", "--load": "0.5"},
    "fluid": {"--load": "2.5", "--threshold": "2", "--horizon": "5"},
    "tune": {"--load": "5.5", "--alpha": "0.9"},
    "equilibrium": {"--load": "2.5", "--threshold": "2"},
    "diffusion": {"--load": "2.5", "--paths": "2"},
    "whatif": {"log": "sessions.csv", "--servers": "3", "--alpha": "0.5"},
    "paper": {"figures": "fig2", "--out": "report"},
    "play": {"--listen": "127.0.0.1:0"},
    "demo": {"--seconds": "1"},
    "demo fleet": {"--seconds": "1"},
    "gateway": {"--listen": "127.0.0.1:0", "--pool": "127.0.0.1:1"},
    "envoy-config": {"--picker": "127.0.0.1:7000", "--listen": "127.0.0.1:8080", "--pool": "127.0.0.1:9001"},
    "picker": {"--listen": "127.0.0.1:0", "--pool": "127.0.0.1:1"},
    "dispatcher": {"--listen": "127.0.0.1:0"},
    "agent": {
        "--pool": "a", "--address": "ws://127.0.0.1:1", "--dispatcher": "http://127.0.0.1:1",
        "--listen": "127.0.0.1:0",
    },
}  # fmt: skip
_NEEDED = {  # what an option needs to have an effect
    ("simulate", "--report-interval"): {"--policy": "stale-reports", "--delay": "0.1"},
    ("compare", "--report-interval"): {"--policies": "jsq,stale-reports", "--delay": "exponential:100"},
    ("simulate", "--utility"): {"--policy": "threshold-utility", "--sizes": "3*1,2*4"},
    ("compare", "--utility"): {"--sizes": "3*1,2*4"},
    ("sweep", "--report-interval"): {"--policy": "jsq,stale-reports"},
    ("sweep", "--utility"): {"--policy": "threshold-utility", "--sizes": "3*1,2*4;5*1"},
    ("simulate", "--sticky-margin"): {"--sticky": "0.5"},
    ("compare", "--sticky-margin"): {"--sticky": "0.5"},
    ("sweep", "--sticky-margin"): {"--sticky": "0.5,1"},
    ("gateway", "--sticky-margin"): {"--sticky": "cookie"},
    ("picker", "--sticky-margin"): {"--sticky": "cookie"},
    ("gateway", "--sticky-key-file"): {"--sticky": "cookie"},
    ("picker", "--sticky-key-file"): {"--sticky": "header:x-pool"},
    ("tune", "--delay"): {"--load-max": "2", "--pools": "5"},
    ("whatif", "--report-interval"): {"--policies": "stale-reports"},
    ("whatif", "--capacity"): {"--policies": "pull,threshold"},
    ("whatif", "--sample-size"): {"--policies": "power-of-d,threshold", "--limit": "2"},
}


def _needed_by_tls() -> dict[tuple[str, str], dict[str, str]]:
    """Return what the options of TLS need: the other half of a pair, and pools that speak TLS or HTTP/2."""
    needed = {}
    for command, prefixes in _PAIRS.items():
        for prefix in prefixes:
            pools = {"--pool": "https://localhost:1"} if prefix == "pool" else {}
            for one, other in (("cert", "key"), ("key", "cert")):
                needed[command, f"--{prefix}-{one}"] = {f"--{prefix}-{other}": "empty.toml", **pools}
    for command in ("gateway", "envoy-config"):
        needed |= {(command, name): {"--pool": "https://localhost:1"} for name in ("--pool-ca", "--pool-sni")}
        needed[command, "--health-grpc"] = {"--pool": "h2://127.0.0.1:1"}
    return needed


_PAIRS = {"gateway": ("tls", "admin-tls", "pool"), "picker": ("tls", "admin-tls"), "envoy-config": ("tls", "pool")}
_NEEDED |= _needed_by_tls()
STOPPED_BY = {  # commands that run until they are stopped, or for long, and how to stop them
    "demo": signal.SIGTERM,
    "gateway": signal.SIGTERM,
    "picker": signal.SIGTERM,
    "dispatcher": signal.SIGTERM,
    "agent": signal.SIGTERM,
    "play": signal.SIGTERM,
    "paper": signal.SIGINT,
}

_OWN_POLICIES = (
    "evenly.core:JoinShortestQueue",
    "evenly.core:PowerOfD",
    "json:JSONDecoder",
    "os:getcwd",
    "no_module:Policy",
    "a:",
    ":b",
    "a:b:c",
    "__main__:X",
)
_SIZES = (
    "5*1", "3*1,2*4", "5*0", "5*-1", "5*1e9", "5*nan", "0*1,5*2", "5*1,5*1", "*", ",", "5*", "1e9*1", "9" * 99,
    ",".join(f"1*{size}" for size in range(1, 99)), "5*" + "9" * 99,
)  # fmt: skip
_NAMES = (
    "dns://localhost:1", "dns://a.invalid:1=4", "srv://_a._tcp.a.invalid", "dns+h2://a.invalid:1", "dns://", "srv://a:1",
    "dns://127.0.0.1:1", "dns://[::1]:1", "dns://a", "dns://a:0", "dns://a:1=nan", "srv://.", "ftp://a:1", "dns://é:1",
    "dns://" + "a." * 200 + "b:1", "h2+dns://a:1", "dns+dns://a:1", "srv://a=0",
)  # fmt: skip
_RANGES = (
    "1,2", "1,,2", ",", "1:2:0.5", "2:1:-0.5", "1:2:0", "2:1:1", "0:1e9:1e-9", "1:1000000:1", "1:9999:1,1:9999:1",
    "1..1000/7", "1..1000000000/1000000", "5..1/3", "0..1/3", "1..2/1", "1..2/99999999999", "1..2", "1:2", "a:b:c",
    "nan:1:1", "inf..1/3", "1e999:1:1", f"{'9' * 99}:1:1", "1e-300:1e300:1e-300", "1;2", "0.5:0.99:0.01",
)  # fmt: skip
_SCHEMES = (
    "https://localhost:1", "h2://127.0.0.1:1=4", "h2s://localhost:1", "HTTP://127.0.0.1:1", "ftp://a:1", "h2://",
    "://a:1", "h2:/a:1", "https://127.0.0.1:1", "h2://h2://a:1", "h2://a:1/path", "https://user@a:1",
)  # fmt: skip
_BY_OPTION = {
    "--schedule": SCHEDULES,
    "--listen": ADDRESSES,
    "--pool": (*ADDRESSES, *_NAMES, *_SCHEMES),
    "--resolver": ADDRESSES,
    "--admin": ADDRESSES,
    "--picker": ADDRESSES,
    "--pool-sni": (*ADDRESSES, "pool.example", "*.example", "127.0.0.1", "a b"),
    "--health-grpc": (*TEXTS, "pkg.Service"),
    "--pool-protocol": (*WORDS, "http", "https", "h2", "h2s", "H2", "dns+h2"),
    "--envoy-admin": ADDRESSES,
    "--store": (
        "redis://127.0.0.1:1",
        "rediss://a:b@127.0.0.1:1/3",
        "redis://127.0.0.1:1/x",
        "redis://",
        *ADDRESSES,
    ),
    "--dispatcher": ("http://127.0.0.1:1", "https://127.0.0.1:1", "http://10.0.0.1:1/x", "ftp://a", *ADDRESSES),
    "--alpha": NUMBERS,
    "--sticky": (
        *("cookie", "cookie:a", "header:x-a", "cookie:", "header", "header:host", "header:x y", "cookie:a;b"),
        *("cookie:a=b", f"header:{'a' * 99}", "header:\u00e9", "cookie:a\r\nb", "0.5", "1", "-1", "1.1", "nan"),
    ),
    "--policy": (*WORDS, *_OWN_POLICIES),
    "--policies": (*WORDS, *_OWN_POLICIES, ",".join(_OWN_POLICIES)),
    "--delay": (*NUMBERS, "0.1", "exponential:0.1", "exponential:1000", "exponential:-1", "exponential:", "x:1"),
    "--service": LAWS,
    "--arrivals": LAWS,
    "--initial-tasks": NUMBERS,
    "--sizes": _SIZES,
    "--utility": ("log", "sqrt", "rate", "", "best"),
}
_BY_TYPE = {int: NUMBERS, float: NUMBERS, str: WORDS, Path: PATHS}
_ALL = (*NUMBERS, *TEXTS, *PATHS, *SCHEDULES, *ADDRESSES, *WORDS)
_NUMERIC = {  # options of a sweep whose lists are numbers, though it takes them as texts
    "--pools", "--load", "--threshold", "--alpha", "--sample-size", "--capacity", "--initial-tasks",
    "--service-rate", "--delay", "--report-interval", "--sticky", "--sticky-margin", "--horizon", "--warmup",
    "--replications", "--seed", "--batches",
}  # fmt: skip
_FITTING = 0.75  # share of the values that suit the option's kind; the others are any of them


@dataclass(frozen=True)
class Option:
    """An option, or an argument, of a command. Spellings are all its names; none for an argument."""

    command: str
    name: str
    spellings: tuple[str, ...]
    values: tuple[str, ...]  # that suit its kind; empty for a flag


def read_options() -> list[Option]:
    """Return every option of every command."""
    root: Any = typer.main.get_command(app)
    commands = dict(root.commands)
    for name, group in root.commands.items():
        commands |= {f"{name} {inner}": command for inner, command in getattr(group, "commands", {}).items()}
    return [_option(name, parameter) for name, command in commands.items() for parameter in command.params]


def _option(command: str, parameter: Any) -> Option:  # noqa: ANN401  (typer's parameters are untyped)
    spellings = tuple(name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-"))
    name = spellings[0] if spellings else str(parameter.name)
    if getattr(parameter, "is_flag", False):
        return Option(command, name, spellings, ())
    fallback = _BY_TYPE.get(parameter.type_descriptor.annotation, TEXTS)
    values = _BY_OPTION.get(name, fallback)
    if command == "sweep" and f"--{parameter.name}".replace("_", "-") in _NUMERIC:
        values = (*NUMBERS, *_RANGES)
    return Option(command, name, spellings, values)


def attacks(seed: int) -> Iterator[list[str]]:
    """Yield command lines without end: first each option once per round, alone, then several at a time."""
    chance = random.Random(seed)
    options = read_options()
    while True:
        for option in chance.sample(options, len(options)):
            yield _command_line(chance, option.command, [option])
        for _ in range(len(options) // 3):
            command = chance.choice(list(BASES))
            own = [option for option in options if option.command == command]
            yield _command_line(chance, command, chance.choices(own, k=chance.randint(2, 5)))


def _command_line(chance: random.Random, command: str, attacked: list[Option]) -> list[str]:
    given = dict(BASES[command])
    for option in attacked:
        if needed := _NEEDED.get((command, option.name)):
            given = {**given, **needed} if command != "tune" else dict(needed)
    if chance.random() < 0.2:
        given.pop(chance.choice([name for name in given if name != _PLANNED]))
    for option in attacked:
        given.pop(option.name, None)
    arguments = [part for name, value in given.items() for part in _spelled(chance, (name,), value)]
    for option in attacked:
        if not option.values and option.spellings:
            arguments.append(chance.choice(option.spellings))
            continue
        values = option.values if chance.random() < _FITTING else _ALL
        arguments += _spelled(chance, option.spellings, chance.choice(values))
    return [*command.split(), *arguments]


def _spelled(chance: random.Random, names: tuple[str, ...], value: str) -> list[str]:
    if not names or not names[0].startswith("-"):
        return [value]
    name = chance.choice(names)
    return [f"{name}={value}"] if chance.random() < 0.5 else [name, value]
