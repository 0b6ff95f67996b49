"""The exact stationary distribution of a small system, policy by policy.

This is the yardstick for the simulator at sizes far from the large-system limit. States and events are in
`chain`, the balance equations in `solve`, averages in `averages`, the input rules in `inputs`.

Service has unit rate: `load` is the offered load per pool, and the law does not depend on the service rate.
Without a capacity the total number of tasks is Poisson whatever the policy, so the chain is cut where almost
nothing of that Poisson law is left. `truncation` is the probability that is cut off: the total is off by no
more, other probabilities by about as much, and averages of tasks by a few times that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from evenly.frames import Table, Tabular
from evenly.inputs import accept_other_names, check_function
from evenly.policies import DEFAULT, POLICIES
from evenly.theory.exact.averages import event_means, occupancy_means
from evenly.theory.exact.chain import (
    FloatArray,
    SmallSystem,
    assign_by_sample,
    assign_by_threshold,
    assign_to_shortest,
    explore,
)
from evenly.theory.exact.count import check_size
from evenly.theory.exact.inputs import (
    check_policy,
    checked_numbers,
    checked_sample_size,
    largest_fall,
    largest_total,
    start_threshold,
)
from evenly.theory.exact.solve import stationary_law
from evenly.theory.inputs import plain_alpha
from evenly.theory.wording import percent, short_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExactLaw(Tabular):
    """Long-run averages of a small system.

    Under policies other than threshold, `initial_threshold`, `threshold`, `rise_rate`, `fall_rate`, `change_rate`,
    `green_per_task`, `yellow_per_task`, `resync_per_task` and `messages_per_task` are None, and `threshold_share`
    is empty.

    `max_tasks` is the mean number of tasks in the fullest pool, `spread` the mean standard deviation over the
    pools, `threshold_share` the share of time at each threshold. Rates are per mean task time, and `per_task`
    figures count every arrival, lost or not.
    """

    policy: str
    pools: int
    load: float
    initial_threshold: int | None
    alpha: float | str | Decimal | None
    sample_size: int | None
    capacity: int | None
    tolerance: float
    states: int
    truncation: float
    residual: float
    mean_tasks: float
    pools_with_exactly: FloatArray
    task_share: FloatArray
    max_tasks_distribution: FloatArray
    max_tasks: float
    spread: float
    imbalance: float
    lost_share: float
    threshold_share: dict[int, float]
    rise_rate: float | None
    fall_rate: float | None
    green_per_task: float | None
    yellow_per_task: float | None
    resync_per_task: float | None

    @property
    def threshold(self) -> float | None:
        """The threshold, averaged over time."""
        if not self.threshold_share:
            return None
        return sum(level * share for level, share in self.threshold_share.items())

    @property
    def change_rate(self) -> float | None:
        """Changes of the threshold per mean task time."""
        return None if self.rise_rate is None or self.fall_rate is None else self.rise_rate + self.fall_rate

    @property
    def messages_per_task(self) -> float | None:
        """Green and yellow messages per task; those after changes of the threshold are in `resync_per_task`."""
        if self.green_per_task is None or self.yellow_per_task is None:
            return None
        return self.green_per_task + self.yellow_per_task

    def columns(self) -> Mapping[str, Any]:
        """Return one row per number of tasks: shares of pools and tasks, probability for the fullest pool."""
        return {
            "tasks": np.arange(len(self.pools_with_exactly)),
            "pools_with_exactly": self.pools_with_exactly,
            "task_share": self.task_share,
            "max_tasks_distribution": self.max_tasks_distribution,
        }

    @property
    def thresholds(self) -> Table:
        """The share of time at each threshold; no rows where there is none."""
        share = self.threshold_share
        return Table(
            {"threshold": list(share), "share": list(share.values())}, units={"share": "share of the time"}
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `evenly exact --json` prints; its keys are those of a simulation."""
        return {
            "policy": self.policy,
            "pools": self.pools,
            "load": self.load,
            "alpha": None if self.alpha is None else float(self.alpha),
            "choices": self.sample_size,
            "sample_size": self.sample_size,
            "capacity": self.capacity,
            "mean_tasks": self.mean_tasks,
            "pools_with_exactly": self.pools_with_exactly.tolist(),
            "task_share": self.task_share.tolist(),
            "max_tasks": {"mean": self.max_tasks, "distribution": self.max_tasks_distribution.tolist()},
            "threshold": self._threshold(),
            "messages": self._messages(),
            "spread": {"mean": self.spread},
            "imbalance": {"mean": self.imbalance},
            "lost": self.lost_share,
            "lost_share": self.lost_share,
            "tolerance": self.tolerance,
            "states": self.states,
            "truncation": self.truncation,
            "residual": self.residual,
        }

    def _threshold(self) -> dict[str, Any] | None:
        if not self.threshold_share:
            return None
        return {
            "initial": self.initial_threshold,
            "mean": self.threshold,
            "time_at": {str(level): share for level, share in self.threshold_share.items()},
            "changes_rate": self.change_rate,
        }

    def _messages(self) -> dict[str, float | None] | None:
        if self.messages_per_task is None:
            return None
        return {
            "green_per_task": self.green_per_task,
            "yellow_per_task": self.yellow_per_task,
            "resync_per_task": self.resync_per_task,
            "per_task": self.messages_per_task,
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the probability of each number of tasks in a pool."""
        from evenly.plots import bars, law, style

        axes = style.axes_or_new(ax)
        law.draw_bars(axes, self.pools_with_exactly, "tasks in a pool", name=self._title())
        axes.set_ylabel("probability")
        bars.title_once(axes, self._title())
        return axes

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw pools by tasks, the fullest pool and, if there is one, the threshold: `evenly exact --plot`."""
        from evenly.plots import law, style

        panels = {
            "tasks in a pool": self.pools_with_exactly,
            "tasks in the fullest pool": self.max_tasks_distribution,
        }
        if self.threshold_share:
            panels["threshold"] = np.zeros(max(self.threshold_share) + 1)
            panels["threshold"][list(self.threshold_share)] = list(self.threshold_share.values())
        figure = style.figure_or_new(figure, 3.2 * len(panels), 3.2)
        law.draw_panels(figure, panels, self._title())
        return figure

    @property
    def name(self) -> str:
        """The policy with its parameters."""
        return POLICIES[self.policy].label(
            threshold=self.initial_threshold, alpha=self.alpha, sample_size=self.sample_size
        )

    def _title(self) -> str:
        return f"{self.name}, {self.pools} pools, load {self.load:g}: exact"

    def _headline(self) -> str:
        name = short_label(
            self.policy, threshold=self.initial_threshold, alpha=self.alpha, sample_size=self.sample_size
        )
        lost = "" if self.capacity is None else f", {percent(self.lost_share)} lost"
        means = f"max {self.max_tasks:.4f}, spread {self.spread:.4f}, imbalance {self.imbalance:.4f}"
        return f"{name}, {self.pools:,} pools, load {self.load:g}: {means}{lost}"

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("tasks per pool", f"{self.mean_tasks:.6f}"),
            ("fullest pool", f"{self.max_tasks:.6f}"),
            ("spread over pools", f"{self.spread:.6f}"),
            ("imbalance", f"{self.imbalance:.6f}"),
        ]
        if self.messages_per_task is not None:
            resync = f"{self.resync_per_task:.6f} to resync"
            rows.append(("messages per task", f"{self.messages_per_task:.6f}, and {resync}"))
        if self.threshold_share:
            shares = ", ".join(f"{level}: {percent(share)}" for level, share in self.threshold_share.items())
            rows.append(("threshold", f"{self.threshold:.6f} on average ({shares})"))
        if self.capacity is not None:
            rows.append(("tasks lost", percent(self.lost_share)))
        return rows


@accept_other_names
def solve_exact(
    *,
    policy: str = DEFAULT,
    pools: int,
    load: float,
    threshold: int | None = None,
    alpha: float | str | Decimal | None = None,
    sample_size: int | None = None,
    capacity: int | None = None,
    tolerance: float = 1e-10,
    max_states: int = 400_000,
    progress: Callable[[float], None] | None = None,
) -> ExactLaw:
    """Compute the exact stationary distribution of a small system from its balance equations.

    A threshold without `alpha` is fixed, floor(load) if not given; with `alpha` it is where learning starts,
    0 if not given. Power-of-d samples two pools if `sample_size` is not given. A task sent to a pool that holds
    `capacity` tasks is lost. A chain of more than `max_states` states is rejected.
    `progress` is called with the fraction of the sweeps done, for chains large enough to be swept.

    Paper: Sec. 2.1, Sec. 4.1.
    """
    numbers = checked_numbers(
        pools=pools,
        load=load,
        threshold=threshold,
        sample_size=sample_size,
        capacity=capacity,
        tolerance=tolerance,
        max_states=max_states,
    )
    check_policy(policy, threshold, alpha, sample_size)
    check_function("progress", progress)
    pools, load, capacity, tolerance = numbers.pools, numbers.load, numbers.capacity, numbers.tolerance
    threshold, sample_size, max_states = numbers.threshold, numbers.sample_size, numbers.max_states
    alpha = None if alpha is None else plain_alpha(alpha)
    is_threshold = policy == DEFAULT
    start = start_threshold(load, threshold, alpha, capacity) if is_threshold else None
    falls_at = None if alpha is None else largest_fall(alpha, pools, capacity)
    if policy == "power-of-d":
        sample_size = checked_sample_size(sample_size, pools)
    total_limit, truncation = largest_total(pools, load, capacity, tolerance, max_states)
    system = SmallSystem(
        pools=pools,
        load=load,
        assign={
            DEFAULT: assign_by_threshold,
            "jsq": assign_to_shortest,
            "power-of-d": assign_by_sample(sample_size or 1),
            "random": assign_by_sample(1),
        }[policy],
        threshold=start or 0,
        falls_at=falls_at,
        capacity=capacity,
        total_limit=total_limit,
    )
    check_size(system, policy, sample_size or 1, max_states)
    chain = explore(system, max_states)
    law, residual = stationary_law(chain, progress=progress)
    return ExactLaw(
        policy=policy,
        pools=pools,
        load=load,
        initial_threshold=start,
        alpha=alpha,
        sample_size=sample_size,
        capacity=capacity,
        tolerance=tolerance,
        states=len(chain.states),
        truncation=truncation,
        residual=residual,
        **occupancy_means(chain, law, pools, load),
        **event_means(chain, law, pools * load, is_threshold),
    )
