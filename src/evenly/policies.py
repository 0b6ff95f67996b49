"""The policies by name: what each is called, which parameters it takes and where it is available.

This is the only list of policies. It holds names, no rules: those are in `evenly.core`, whose `make_policy` turns
a name into a policy. A policy of the user's own is a class, or the text "module:Class" that names it;
`evenly.own_policy` finds and makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeGuard

from evenly.errors import InputError
from evenly.inputs import shown

if TYPE_CHECKING:
    from decimal import Decimal

DEFAULT = "threshold"
MAX_NAME = 200  # characters of module:Class
_LONGEST, _NEAR = 40, 0.7  # characters of a name to compare with the known ones, and how alike they must be
COMPARED = ("random", "power-of-d", "jsq", "threshold")  # by default, as in the paper's Fig. 5
COMPARED_SIZED = ("random", "jsq", "weighted-round-robin", "weighted-least", "greedy-utility", "threshold-utility")
PARAMETERS = (
    "threshold",
    "alpha",
    "sample_size",
    "report_interval",
)  # besides the capacity, which every policy takes


@dataclass(frozen=True, kw_only=True)
class PolicyInfo:
    """A policy's name, its parameters, and which parts of the package support it.

    `aggregate`: the simulator needs only the number of pools at each level, by size, so a billion fit. `exact`:
    `solve_exact` solves it. `limit`: its equilibrium in the large-system limit is known. `delayed`: the simulator
    knows what it does while messages are on the way. `live`: the live balancer offers it. `sized`: it is made for
    pools of different sizes. `any_size`: it runs there too, blind to sizes. `utility`: it decides by utility.
    `own`: the user's class.
    """

    name: str
    title: str
    parameters: frozenset[str] = frozenset()
    needs_capacity: bool = False
    aggregate: bool = False
    exact: bool = False
    limit: bool = False
    delayed: bool = False
    live: bool = False
    own: bool = False
    sized: bool = False
    any_size: bool = False
    utility: bool = False

    def label(
        self,
        *,
        threshold: int | None = None,
        alpha: float | str | Decimal | None = None,
        sample_size: int | None = None,
    ) -> str:
        """Return the policy's name with its parameters, for text and pictures."""
        if "alpha" in self.parameters and alpha is not None:
            return f"{self.name}, alpha {alpha}"
        if "threshold" in self.parameters:
            return f"{self.name} {threshold}"
        if self.own:
            return self.name.rpartition(":")[2].rpartition(".")[2]  # the class alone
        return f"power-of-{sample_size}" if "sample_size" in self.parameters else self.name


POLICIES: Mapping[str, PolicyInfo] = {
    info.name: info
    for info in (
        PolicyInfo(
            name="threshold",
            title="the paper's threshold policy",
            parameters=frozenset({"threshold", "alpha"}),
            aggregate=True,
            exact=True,
            limit=True,
            delayed=True,
            live=True,
            any_size=True,
        ),
        PolicyInfo(
            name="jsq",
            title="join the shortest queue",
            aggregate=True,
            exact=True,
            limit=True,
            delayed=True,
            live=True,
            any_size=True,
        ),
        PolicyInfo(
            name="power-of-d",
            title="the shortest of d sampled pools",
            parameters=frozenset({"sample_size"}),
            aggregate=True,
            exact=True,
            limit=True,
            delayed=True,
            live=True,
        ),
        PolicyInfo(
            name="random",
            title="random routing",
            aggregate=True,
            exact=True,
            limit=True,
            delayed=True,
            live=True,
            any_size=True,
        ),
        PolicyInfo(name="round-robin", title="pools in turn"),
        PolicyInfo(name="jiq", title="join an idle queue"),
        PolicyInfo(name="jbt", title="join below a threshold", parameters=frozenset({"threshold"})),
        PolicyInfo(name="pull", title="one token per free slot", needs_capacity=True),
        PolicyInfo(
            name="stale-reports",
            title="the least loaded by the last regular reports",
            parameters=frozenset({"report_interval"}),
            delayed=True,
        ),
        PolicyInfo(
            name="greedy-utility",
            title="the pool where a task adds the most utility",
            aggregate=True,
            live=True,
            sized=True,
            utility=True,
        ),
        PolicyInfo(
            name="threshold-utility",
            title="the threshold policy for pools of different sizes",
            parameters=frozenset({"threshold", "alpha"}),
            aggregate=True,
            live=True,
            sized=True,
            utility=True,
        ),
        PolicyInfo(
            name="weighted-least", title="the fewest tasks per size", aggregate=True, live=True, sized=True
        ),
        PolicyInfo(name="weighted-round-robin", title="pools in turn, by size", sized=True),
    )
}
AGGREGATE = tuple(name for name, info in POLICIES.items() if info.aggregate)
EXACT = tuple(name for name, info in POLICIES.items() if info.exact)
LIMIT = tuple(name for name, info in POLICIES.items() if info.limit)
DELAYED = tuple(name for name, info in POLICIES.items() if info.delayed)
SIZED = tuple(name for name, info in POLICIES.items() if info.sized or info.any_size)
UTILITY = tuple(name for name, info in POLICIES.items() if info.utility)
LIVE = tuple(name for name, info in POLICIES.items() if info.live)
THEIR_NAMES = {  # what proxies and papers call our policies, in lower case and without signs
    "leastconn": "jsq",  # HAProxy and nginx
    "leastconnections": "jsq",
    "joinshortestqueue": "jsq",
    "jointheshortestqueue": "jsq",
    "leastrequest": "power-of-d",  # Envoy takes the better of two
    "poweroftwo": "power-of-d",
    "p2c": "power-of-d",
}
LIVE_WEIGHTED = (DEFAULT, *(name for name in LIVE if POLICIES[name].sized))  # the default becomes one of these


def find_policy(name: object, among: Iterable[str] = tuple(POLICIES), *, own: bool = False) -> PolicyInfo:
    """Return the policy of this name, or raise InputError if it is not among those available here.

    With `own`, it may also be a class, or the name of one as "module:Class". The class is not looked for here.
    """
    if own and is_own(name):
        return PolicyInfo(name=own_name(name), title="your own policy", own=True)
    names = tuple(among)
    if not isinstance(name, str) or name not in names:
        more = ", or your own: a class, or module:Class" if own else ""
        meant = _meant(name, names) if isinstance(name, str) else None
        end = "." if meant is None else f"; did you mean {meant!r}?"
        raise InputError(f"policy must be one of {', '.join(names)}{more}, not {shown(name)}{end}")
    return POLICIES[name]


def _meant(written: str, names: tuple[str, ...]) -> str | None:
    """Return the name that was probably meant: what other programs call the policy, or the nearest one."""
    plain = {"".join(filter(str.isalnum, name)): name for name in names}
    letters = "".join(filter(str.isalnum, written.lower()))[:_LONGEST]
    known = plain | {theirs: name for theirs, name in THEIR_NAMES.items() if name in names}
    near = get_close_matches(letters, known, n=1, cutoff=_NEAR)
    return known[near[0]] if near else None


def is_own(policy: object) -> TypeGuard[str | type[Any]]:
    """Return True for a class, and for a text with a colon, which no name of ours has."""
    return isinstance(policy, type) or (isinstance(policy, str) and ":" in policy)


def own_name(policy: str | type[Any]) -> str:
    """Return "module:Class" for a class; a text must have this form already."""
    name = policy if isinstance(policy, str) else f"{policy.__module__}:{policy.__qualname__}"
    module, _, path = name.partition(":")
    parts = [*module.split("."), *path.replace("<locals>", "locals").split(".")]
    if len(name) > MAX_NAME or not all(part.isidentifier() for part in parts):
        raise InputError(f"policy must be written module:Class, such as mymodule:MyPolicy, not {shown(name)}.")
    return name


def check_live_weight(name: str, weight: float) -> None:
    """Reject a weight other than 1 if the live balancer's policy would ignore it."""
    if weight != 1 and name not in LIVE_WEIGHTED:
        *some, last = LIVE_WEIGHTED
        raise InputError(
            f"The policy {name} ignores weights; use {', '.join(some)} or {last}, or leave out the weights."
        )


def check_distinct(policies: Iterable[str | type[Any]]) -> None:
    """Reject a policy that is given twice: the two would do exactly the same."""
    seen: list[str | type[Any]] = []
    for policy in policies:
        if policy in seen:
            name = own_name(policy) if is_own(policy) else policy
            raise InputError(f"policies must name each policy once, not {shown(name)} twice.")
        seen.append(policy)


def check_parameters(
    names: Iterable[str | type[Any]], given: Mapping[str, object], among: Iterable[str] = POLICIES
) -> None:
    """Reject a parameter that none of the named policies takes: ignoring it would give a misleading result.

    `given` maps parameters to their values, None where not given.
    """
    asked, available = [find_policy(name, own=True) for name in names], [POLICIES[name] for name in among]
    for parameter in PARAMETERS:
        if given.get(parameter) is not None and not any(parameter in info.parameters for info in asked):
            owners = " or ".join(info.name for info in available if parameter in info.parameters)
            policies = " or ".join(info.name for info in asked)
            raise InputError(f"{parameter} is for policy {owners}, not {policies}.")
