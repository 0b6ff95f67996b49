"""A policy of the user's own: find its class, make one, and say in one sentence what is wrong with it.

The class is the user's code. It runs when a simulation starts, not when a scenario or a saved result names it.
"""

from __future__ import annotations

import inspect
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Protocol

from evenly.core import Choose
from evenly.errors import InputError
from evenly.inputs import shown
from evenly.policies import own_name

METHODS = ("join", "leave", "arrive", "depart")
FAILURES = (Exception, SystemExit)  # what foreign code may raise; Ctrl-C is not its doing
_LONGEST = 200  # characters of a foreign error message


class OwnPolicy(Protocol):
    """What a policy of your own must have. The pools of a simulation are named 0, 1, 2, ...

    It may also have `messages`, the messages sent so far (a number, or a `MessageCount` of `evenly.core`), and
    `threshold`, a whole number. Both are recorded. If its constructor takes a `capacity`, it gets that of the
    scenario, which is None without a limit.
    """

    def join(self, pool: Any, tasks: int) -> None:  # noqa: ANN401
        """Add a pool that has `tasks` tasks already."""
        ...

    def leave(self, pool: Any) -> None:  # noqa: ANN401
        """Remove a pool; its tasks are forgotten."""
        ...

    def arrive(self, choose: Choose) -> Any:  # noqa: ANN401
        """Return the pool for a new task, or None to lose it."""
        ...

    def depart(self, pool: Any) -> None:  # noqa: ANN401
        """Take note that a task of this pool has finished."""
        ...


def find_class(policy: str | type[Any]) -> type[OwnPolicy]:
    """Return the class of a policy, checked. Given as "module:Class", it is imported."""
    name = own_name(policy)
    found: Any = _imported(name) if isinstance(policy, str) else policy
    if not isinstance(found, type):
        raise InputError(f"The policy {name} must be a class, not {shown(found)}.")
    check_class(found)
    return found


def check_class(kind: type[Any]) -> None:
    """Reject a class that lacks a method, or that cannot be made without arguments."""
    name = own_name(kind)
    missing = [method for method in METHODS if not callable(getattr(kind, method, None))]
    if missing:
        raise InputError(
            f"The policy {name} must have the methods {', '.join(METHODS[:-1])} and {METHODS[-1]}, "
            f"but it has no {' and no '.join(missing)}."
        )
    for method in METHODS:
        if _returns_later(getattr(kind, method)):
            raise InputError(f"The policy {name} must have plain methods: {method} is async, or a generator.")
    needed = [
        each.name
        for each in _parameters(kind)
        if each.default is each.empty
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and each.name != "capacity"
    ]
    if needed:
        raise InputError(
            f"The policy {name} must be a class that is made without arguments, "
            f"but its constructor needs {' and '.join(needed)}: give every parameter a default."
        )


def new_policy(policy: str | type[Any], capacity: int | None = None) -> OwnPolicy:
    """Make a policy, without pools yet."""
    kind = find_class(policy)
    arguments = {"capacity": capacity} if takes_capacity(kind) else {}
    try:
        return kind(**arguments)
    except FAILURES as error:
        raise failure(own_name(kind), "its constructor", error) from error


def takes_capacity(kind: type[Any]) -> bool:
    """Return True if the constructor has a parameter of this name."""
    return any(each.name == "capacity" for each in _parameters(kind))


def failure(name: str, where: str, error: BaseException) -> InputError:
    """Return the error for an exception that the policy raised."""
    return InputError(f"The policy {name} failed in {where}: {told(error)}.")


def told(error: BaseException) -> str:
    """Return the exception in one line."""
    try:
        text = " ".join(str(error).split()).rstrip(".")
    except FAILURES:  # from a foreign __str__
        text = ""
    kind = type(error).__name__
    text = f"{kind}: {text}" if text else kind
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _returns_later(function: object) -> bool:
    tests = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(test(function) for test in tests)


def _parameters(kind: type[Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):  # some built-in classes have no signature
        return []


def _imported(name: str) -> object:
    module_name, _, path = name.partition(":")
    if "<locals>" in path:
        raise InputError(f"The policy {name} is defined in a function: give the class itself, not its name.")
    if module_name.endswith(".py"):
        raise InputError(
            f"The policy {name} must be written {module_name.removesuffix('.py')}:{path}, without .py."
        )
    try:
        module = sys.modules.get(module_name) or import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise _import_failure(name, error) from error  # the module exists, and needs another one
        raise InputError(
            f"There is no module {shown(error.name)} for the policy {name}: "
            "it must be in the current folder, or installed."
        ) from None
    except FAILURES as error:
        raise _import_failure(name, error) from error
    found: Any = module
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(f"The policy {name} does not exist: {_missing(found, part)}")
        found = getattr(found, part)
    return found


def _import_failure(name: str, error: BaseException) -> InputError:
    return InputError(f"The module of the policy {name} cannot be imported: {told(error)}.")


def _missing(owner: Any, part: str) -> str:  # noqa: ANN401
    classes = [name for name, value in vars(owner).items() if isinstance(value, type)]
    near = get_close_matches(part, classes, n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    return f"{owner.__name__} has no class {part}{hint}"
