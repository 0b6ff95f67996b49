"""The policy under test, and the error that says which rule it breaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenly.inputs import shown
from evenly.own_policy import takes_capacity

SAME_CHANCE = "pools that joined with the same tasks have the same chance"
SAME_STATE = "the chances of the next task depend on the tasks of the pools alone"
_ADVICE = {
    SAME_CHANCE: "If pools are meant to differ, call check_policy with uniform=False.",
    SAME_STATE: "If the policy remembers more than the tasks of each pool, call check_policy with memory=True; "
    "if pools are meant to differ, with uniform=False.",
}


class PolicyError(AssertionError):
    """A policy breaks a rule. The message names the rule and shows the shortest example found."""


@dataclass(frozen=True)
class Subject:
    """The policy under test. A class that takes a capacity gets this one; a function knows its own."""

    policy: Callable[..., Any]
    capacity: int | None

    @property
    def name(self) -> str:
        """The class or function, for messages."""
        return getattr(self.policy, "__qualname__", None) or shown(self.policy)

    @property
    def call(self) -> str:
        """How a policy is made, for messages."""
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self._arguments().items())})"

    def make(self) -> Any:  # noqa: ANN401
        """Return a new policy."""
        return self.policy(**self._arguments())

    def error(self, rule: str, calls: Sequence[str]) -> PolicyError:
        """Return the error for a broken rule, with the calls that break it."""
        lines = "".join(f"\n    {call}" for call in calls)
        advice = f"\n{_ADVICE[rule]}" if rule in _ADVICE else ""
        return PolicyError(f'{self.name} breaks the rule "{rule}":{lines}{advice}')

    def _arguments(self) -> dict[str, int | None]:
        """Return what a simulation passes to the constructor: the capacity, or None if there is no limit."""
        takes = isinstance(self.policy, type) and takes_capacity(self.policy)
        return {"capacity": self.capacity} if takes else {}


def size_of(candidates: Sequence[Any]) -> int:
    """Return the number of candidates, or raise ValueError if nothing can be chosen from them."""
    if isinstance(candidates, Mapping | set | frozenset) or len(candidates) == 0:
        raise ValueError(f"choose needs a list or another sequence that is not empty, not {shown(candidates)}")
    return len(candidates)
