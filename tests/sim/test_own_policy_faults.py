"""A policy of the user's own that is wrong: one sentence names it, and shows what it did."""

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evenly import InputError, simulate, with_policies
from evenly.core import Choose
from tests.sim.own_policies import SMALL, First


class Chosen(First):
    """Returns, or does, what a test says."""

    answer: Any = None

    def arrive(self, choose: Choose) -> object:
        return self.answer(choose) if callable(self.answer) else self.answer


def raising(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def late(value: int) -> property:
    """Return an attribute that is None when it is first read."""
    values = iter([None])
    return property(lambda _: next(values, value))


def falling() -> property:
    values = iter(range(1000, 0, -1))
    return property(lambda _: next(values))


async def later(self: object, choose: Choose) -> int:
    return 0


def in_turn(self: object, choose: Choose) -> Iterator[int]:
    yield 0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("pool-3", "must return a pool from arrive, a whole number from 0 to 4, or None .*, not 'pool-3'"),
        (5, "not 5."),
        (True, "not True."),
        (np.float64(2), "not 2.0."),
        (raising(KeyError(3)), "failed in arrive: KeyError: 3."),
        (raising(ValueError("a\nb.")), "failed in arrive: ValueError: a b."),
        (raising(SystemExit(0)), "failed in arrive: SystemExit: 0."),
        (raising(RuntimeError()), r"failed in arrive: RuntimeError\.$"),
        (raising(RuntimeError("x" * 5000)), "RuntimeError: x{180}"),
        (lambda choose: choose([]), r"choose needs a list or another sequence that is not empty, not \[\]"),
        (lambda choose: choose({0: 3}), "choose needs a list"),
    ],
)
def test_nonsense_is_named(answer: object, words: str) -> None:
    kind = type("Odd", (Chosen,), {"answer": staticmethod(answer) if callable(answer) else answer})
    with pytest.raises(InputError, match=f"The policy .*:Odd .*{words}") as caught:
        simulate(replace(SMALL, policy=kind))
    if "failed" in words:
        assert caught.value.__cause__ is not None
    assert len(str(caught.value)) < 330


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"depart": raising(ZeroDivisionError())}, "failed in depart: ZeroDivisionError"),
        ({"join": lambda self, pool: None}, "failed in join: TypeError"),
        ({"__init__": raising(OSError("disk"))}, "failed in its constructor: OSError: disk."),
        ({"arrive": None}, "must have the methods join, leave, arrive and depart, but it has no arrive."),
        ({"__init__": lambda self, memory, *, size: None}, "its constructor needs memory and size: give every"),
        ({"messages": "many"}, "messages of the policy .*:Odd must be a whole number .*, not 'many'"),
        ({"messages": property(raising(OSError("x")))}, "failed in messages: OSError: x"),
        ({"threshold": 2.5}, "threshold of the policy .*:Odd must be a whole number .*, not 2.5"),
        ({"threshold": -1}, "threshold of the policy .*, not -1"),
        ({"threshold": late(3)}, "must have its threshold from the start, or never"),
        ({"messages": falling()}, "messages of the policy .*:Odd must not fall, as from [0-9]+ to [0-9]+"),
        ({"arrive": later}, "must have plain methods: arrive is async, or a generator"),
        ({"arrive": in_turn}, "must have plain methods: arrive is async, or a generator"),
    ],
)
def test_a_class_that_cannot_work_is_named(changes: dict[str, Any], words: str) -> None:
    kind = type("Odd", (First,), changes)
    with pytest.raises(InputError, match=words):
        simulate(replace(SMALL, policy=kind))


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("a:", "must be written module:Class, such as mymodule:MyPolicy, not 'a:'"),
        (First(), "policy must be one of threshold, .*, or your own: a class, or module:Class, not <"),
        (int, "The policy builtins:int must have the methods"),
    ],
)
def test_what_is_no_policy_is_refused_at_once(policy: Any, words: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=words):
        replace(SMALL, policy=policy)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay": 0.1}, r"delay is for policy threshold, .*, not .*:First\."),
        ({"alpha": 0.9}, "alpha is for policy threshold or threshold-utility, not .*:First"),
        ({"pools": 10**8}, "pools must be a whole number from 1 to 10000000"),
    ],
)
def test_options_of_other_policies_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(SMALL, policy=First, **options)


def test_policies_are_compared_once_each_and_not_without_end() -> None:
    with pytest.raises(InputError, match=r"once, not '.*:First' twice"):
        with_policies(SMALL, ["jsq", First, First])
    endless = (type("Some", (First,), {}) for _ in iter(int, 1))
    with pytest.raises(InputError, match="at most 1000"):
        with_policies(SMALL, endless)  # type: ignore[arg-type]


class Endless(First):
    """Presses Ctrl-C, so to speak, and then loops."""

    def arrive(self, choose: Choose) -> object:
        _thread.interrupt_main()
        while True:
            time.sleep(0.001)


def test_an_interrupt_ends_a_policy_that_loops() -> None:
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        simulate(replace(SMALL, policy=Endless))
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()
