"""The same histories in another process, where texts have other hash values and so sets another order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

from evenly.testing.histories import histories
from evenly.testing.player import BrokenError, Player
from evenly.testing.subject import Subject

_PROGRAM = "from evenly.testing.elsewhere import main; main()"
_TIMEOUT_S = 300.0
_within = False  # True in the other process, whose import of the policy must not start a third


def check_elsewhere(subject: Subject) -> None:
    """Raise PolicyError if the policy decides otherwise in a process with another hash seed.

    Nothing is checked unless the policy can be imported there: one that a script, a notebook or a function
    defines cannot.
    """
    name = _importable(subject.policy)
    if name is None or _within:
        return
    there = _picks_elsewhere(name, subject.capacity)
    for history, expected in zip(histories(), there, strict=False):
        player = _played(subject, history)
        if player.picks != expected:
            rule = "the same choices lead to the same pools, in every process"
            calls = [*player.calls, f"# with another PYTHONHASHSEED, the tasks go to {expected}"]
            raise subject.error(rule, calls)


def _importable(policy: Callable[..., Any]) -> tuple[str, str] | None:
    module, name = getattr(policy, "__module__", None), getattr(policy, "__qualname__", None)
    if module in (None, "__main__") or module not in sys.modules or not name or "<" in name:
        return None
    try:
        return (module, name) if attrgetter(name)(sys.modules[module]) is policy else None
    except AttributeError:
        return None


def _picks_elsewhere(name: tuple[str, str], capacity: int | None) -> list[list[int | None]]:
    """Return where the tasks of each history go in another process; nothing if it cannot import the policy."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    settings = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _PROGRAM, json.dumps([*name, capacity])]
    try:
        done = subprocess.run(
            command, env=settings, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=True
        )
        found: list[list[int | None]] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return []
    return found


def main() -> None:
    """Play all histories with the policy that the command line names, and print where the tasks go."""
    global _within  # noqa: PLW0603
    _within = True
    module, name, capacity = json.loads(sys.argv[1])
    subject = Subject(attrgetter(name)(import_module(module)), capacity)
    picks = [_played(subject, history).picks for history in histories()]
    print(json.dumps([[None if pick is None else int(pick) for pick in each] for each in picks]))  # type: ignore[call-overload]


def _played(subject: Subject, history: list[Any]) -> Player:
    player = Player(subject)
    try:
        for _ in player.play(history):
            pass
    except BrokenError:
        pass
    return player
