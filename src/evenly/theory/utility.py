"""The best total utility of pools of different sizes: a bound for every policy, and where many pools reach it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.frames import Tabular
from evenly.inputs import accept_other_names
from evenly.theory.inputs import positive_load
from evenly.workload.pools import DEFAULT_UTILITY, PoolClass, Utility, find_utility, parse_sizes, sizes_text

_HALVINGS = 100  # of an interval of marginal utilities: far below the 40 bits to which these are rounded


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BestUtility(Tabular):
    """The largest mean utility per pool at a load, and how the tasks are spread then.

    `bound` is the utility per pool, which no policy exceeds in the long run. `marginal` is what one more task adds
    there. Arrays have one entry per class of `sizes`: a pool of the class has `tasks` tasks at least, and a share
    `share_above` of them has one more. With one size, `tasks` is floor(load) and `share_above` is the rest.
    """

    sizes: tuple[PoolClass, ...]
    load: float
    utility: str
    bound: float
    marginal: float
    tasks: NDArray[np.int64]
    share_above: NDArray[np.float64]

    def columns(self) -> Mapping[str, Any]:
        """Return one row per class: its number of pools, their size, and their tasks."""
        return {
            "size": np.array([each.size for each in self.sizes]),
            "pools": np.array([each.count for each in self.sizes]),
            "tasks": self.tasks,
            "share_above": self.share_above,
            "mean_tasks": self.tasks + self.share_above,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the result ready for JSON."""
        return {
            "sizes": sizes_text(self.sizes),
            "load": self.load,
            "utility": self.utility,
            "bound": self.bound,
            "marginal": self.marginal,
            "tasks": self.tasks.tolist(),
            "share_above": self.share_above.tolist(),
        }

    def _headline(self) -> str:
        return f"{sizes_text(self.sizes)}, load {self.load:.12g}: {self.utility} utility {self.bound:.6g} per pool"

    def _rows(self) -> Sequence[tuple[str, str]]:
        means = self.tasks + self.share_above
        return [
            (f"{each.count:,} of size {each.size:.12g}", f"{mean:.6g} tasks")
            for each, mean in zip(self.sizes, means, strict=True)
        ]


@accept_other_names
def predict_best_utility(
    *, sizes: str | Sequence[PoolClass], load: float, utility: str = DEFAULT_UTILITY
) -> BestUtility:
    """Return the largest mean utility per pool that any policy can have at a load, in tasks per pool.

    sizes: classes of pools, such as "80*1,20*4" for 80 pools of size 1 and 20 of size 4.
    utility: log, sqrt or rate (default: log).

    The best utility of a fixed number of tasks is a concave function of that number. The number of tasks in the
    system has the mean pools * load in the long run. By Jensen's inequality, the mean utility is therefore at most
    the best utility at the mean. That is the value of a small convex program, which is solved by filling the
    marginal utilities in decreasing order. Systems with many pools come close to it.

    Paper: Sec. 2 (the utility), eq. (1) (the balanced state, which is this one with a single size).
    """
    classes, load = parse_sizes(sizes), positive_load(load)
    chosen = find_utility(utility)
    counts = np.array([each.count for each in classes], float)
    shares = counts / counts.sum()
    tasks = _filled(classes, shares, load, chosen)
    gains = np.array([chosen.marginal(each.size, int(n)) for each, n in zip(classes, tasks, strict=True)])
    at_edge = gains == gains.max()
    room, left = float(shares[at_edge].sum()), max(load - float(shares @ tasks), 0.0)
    totals = np.array([chosen.total(each.size, int(n)) for each, n in zip(classes, tasks, strict=True)])
    return BestUtility(
        sizes=classes,
        load=load,
        utility=chosen.name,
        bound=float(shares @ totals) + left * float(gains.max()),
        marginal=float(gains.max()),
        tasks=tasks,
        share_above=np.where(at_edge, left / room, 0.0),
    )


def _filled(
    classes: Sequence[PoolClass], shares: NDArray[np.float64], load: float, utility: Utility
) -> NDArray[np.int64]:
    """Return tasks per class whose marginal utilities come before all others, with a mean of at most the load."""

    def above(value: float) -> NDArray[np.int64]:
        return np.array([_count(lambda n, s=each.size: utility.marginal(s, n) > value) for each in classes])  # type: ignore[misc]

    high = max(utility.marginal(each.size, 0) for each in classes)
    # No class has more than load / share tasks per pool on average: with more, the load is exceeded.
    low = min(
        utility.marginal(each.size, 2 * int(load / share) + 2) for each, share in zip(classes, shares, strict=True)
    )
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if shares @ above(middle) <= load:
            high = middle
        else:
            low = middle
    return above(high)


def _count(holds: Callable[[int], bool]) -> int:
    """Return the first number for which a condition fails that holds for all numbers before."""
    high = 1
    while holds(high - 1):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle - 1):
            low = middle
        else:
            high = middle
    return low
