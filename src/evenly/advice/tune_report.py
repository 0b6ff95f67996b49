"""Tune a system: find an alpha for it, or predict what a given alpha does.

The arguments select one of four questions:

- `load_max`: an alpha for loads up to it in the large-system limit, by the paper's rule;
- `load_max` and `pools`: an alpha for `pools` pools, from measurements (`recommend_alpha`);
- `load` and `alpha`: where and how soon the threshold settles in the large-system limit (`predict_settling`);
- `load`, `alpha` and `pools`: that, and how stable the threshold of `pools` pools is (`predict_stability`).

Paper: Sec. 4.5; Prop. 6, Cor. 2, Prop. 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenly.errors import InputError
from evenly.frames import Tabular
from evenly.inputs import accept_other_names, whole_number
from evenly.theory import tuning
from evenly.theory.inputs import plain_alpha, positive_load
from evenly.theory.settling import Settling, predict_settling
from evenly.theory.stability.predict import predict_stability, stable_pools
from evenly.theory.stability.result import Stability
from evenly.theory.tuning import Alpha
from evenly.workload.delay import Delay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenly.advice.recommendation import Advice

_KEYS = (
    *("load", "initial_load", "settled_threshold", "optimal", "settle_time_bound"),
    *("pools_measured", "loads", "delay", "method", "paper_rule_possible", "paper_rule_met", "candidates"),
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TuneReport(Tabular):
    """The answer to a question about alpha; None for what was not asked.

    `alpha_min` is the paper's bound for loads up to `load_max`, `suggested_alpha` an alpha above it.
    `stable_pools` is the fewest pools at and above which the threshold is off the optimum at most 1 % of the time.
    """

    load_max: float | None = None
    load: float | None = None
    alpha: Alpha | None = None
    initial_tasks: float | tuple[int, ...] | None = None
    pools: int | None = None
    seed: int | None = None
    alpha_min: float | None = None
    suggested_alpha: float | None = None
    advice: Advice | None = None
    settling: Settling | None = None
    stability: Stability | None = None
    stable_pools: int | None = None

    @property
    def recommended_alpha(self) -> float | None:
        """The alpha to take: as measured, or by the paper's rule; None if one was given."""
        return self.suggested_alpha if self.advice is None else self.advice.alpha

    @property
    def _main(self) -> Advice | Stability | Settling | None:
        """The most specific part of the answer."""
        return self.advice or self.stability or self.settling

    def columns(self) -> Mapping[str, Any]:
        """Return the table of the most specific part: candidates, thresholds, settling or the paper's rule."""
        if self._main is not None:
            return self._main.columns()
        return {
            "load_max": [self.load_max],
            "alpha_min": [self.alpha_min],
            "recommended_alpha": [self.recommended_alpha],
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `evenly tune --json` prints, with the same keys for every question."""
        return {
            **dict.fromkeys(_KEYS),
            "load_max": self.load_max,
            "alpha": None if self.alpha is None else float(self.alpha),
            "alpha_min": self.alpha_min,
            "recommended": self.suggested_alpha,
            "pools": self.pools,
            "seed": self.seed,
            "stability": None if self.stability is None else self.stability.to_dict(),
            "stable_pools": self.stable_pools,
            **({} if self.settling is None else self.settling.to_dict()),
            **({} if self.advice is None else self.advice.to_dict()),
        }

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the candidates for alpha, the share of time at each threshold, or where the threshold settles."""
        return self._drawable().plot(ax=ax)

    def plot_panels(self, *, figure: Figure | None = None) -> Figure:
        """Draw the candidates as `evenly tune --plot` does, or the picture of `plot`."""
        if self.advice is not None:
            return self.advice.plot_panels(figure=figure)
        from evenly.plots import style

        drawable = self._drawable()
        figure = style.figure_or_new(figure, 6.4, 4.2)
        with style.house_style():
            drawable.plot(ax=figure.add_subplot())
        return figure

    def _drawable(self) -> Advice | Stability | Settling:
        if self._main is None:
            raise InputError("The paper's rule has no picture: give load and alpha, or load_max and pools.")
        return self._main

    def _headline(self) -> str:
        if self._main is not None:
            return self._main._headline()
        rule = f"loads up to {self.load_max:g}: alpha above {self.alpha_min:.6f}"
        taken = self.suggested_alpha
        return f"{rule}, {f'{self.alpha} will do' if taken is None else f'take {taken}'}"

    def _rows(self) -> list[tuple[str, str]]:
        if self.advice is not None:
            return self.advice._rows()
        rows = []
        if self.load_max is not None:
            bound = f"{self.load_max:g}/{self.load_max + 1:g} = {self.alpha_min:.6f}"
            rows.append(("alpha must be above", bound))
        if self.suggested_alpha is not None:
            rows.append(("recommended alpha", f"{self.suggested_alpha}"))
        for part in (self.settling, self.stability):
            rows += [] if part is None else part._rows()
        if self.stable_pools is not None:
            steady = f"{self.stable_pools:,} pools on: off the optimum for at most 1 % of the time"
            rows.append(("steady from", steady))
        return rows


@accept_other_names
def tune(
    *,
    load_max: float | None = None,
    load: float | None = None,
    alpha: Alpha | None = None,
    initial_tasks: float | Sequence[int] | None = None,
    pools: int | None = None,
    seed: int | None = None,
    delay: float | str | Delay | None = None,
    progress: Callable[[float], None] | None = None,
) -> TuneReport:
    """Find an alpha for loads up to `load_max`, or predict what `alpha` does under `load`.

    Without `pools` the answer is for the large-system limit. `initial_tasks` (default: 0) is the number of tasks
    per pool at time 0, or a sequence with the tasks of each pool. `seed` (default: 1), `delay` (default: 0; how
    long tasks and messages are on the way, as in a `Scenario`) and `progress` are for the measurements for
    `load_max` and `pools`.
    """
    _check_question(load_max, load, alpha, initial_tasks, pools, seed)
    if delay is not None and (pools is None or load is not None):
        raise InputError("delay only affects the search for alpha: give it with load_max and pools, without load.")
    load_max = None if load_max is None else positive_load(load_max, "load_max")
    load = None if load is None else positive_load(load)
    alpha = None if alpha is None else plain_alpha(alpha)
    pools = None if pools is None else whole_number("pools", pools, 2, tuning.MAX_POOLS)
    seed = None if seed is None else whole_number("seed", seed, 0, 2**64 - 1)
    if alpha is not None and pools is not None:
        tuning.check_alpha_for_pools(alpha, pools)
    if alpha is not None and load_max is not None:
        tuning.check_alpha_for_load(alpha, load_max)
    found: dict[str, Any] = {}
    if load_max is not None:
        found["alpha_min"] = tuning.alpha_min(load_max)
    if load is not None and alpha is not None:
        found |= _expected(load, alpha, 0.0 if initial_tasks is None else initial_tasks, pools)
    elif load_max is not None and pools is not None:
        from evenly.advice.alpha import recommend_alpha  # the simulator takes a while to load

        seed = 1 if seed is None else seed
        found["advice"] = recommend_alpha(
            pools=pools, load_max=load_max, seed=seed, delay=0.0 if delay is None else delay, progress=progress
        )
    elif load_max is not None and alpha is None:
        found["suggested_alpha"] = tuning.suggested_alpha(load_max)
    return TuneReport(load_max=load_max, load=load, alpha=alpha, pools=pools, seed=seed, **found)


def _expected(
    load: float, alpha: Alpha, initial_tasks: float | Sequence[int], pools: int | None
) -> dict[str, Any]:
    settling = predict_settling(load=load, alpha=alpha, initial_tasks=initial_tasks)
    found: dict[str, Any] = {"settling": settling, "initial_tasks": settling.initial_tasks}
    if pools is not None:
        found["stability"] = predict_stability(pools=pools, load=load, alpha=alpha)
        found["stable_pools"] = stable_pools(load=load, alpha=alpha)
    return found


def _check_question(
    load_max: float | None,
    load: float | None,
    alpha: Alpha | None,
    initial_tasks: float | Sequence[int] | None,
    pools: int | None,
    seed: int | None,
) -> None:
    """Reject arguments that do not form one of the questions."""
    if load is None and load_max is None:
        raise InputError(
            "Give load_max to get a recommended alpha, or load and alpha to predict how that alpha performs."
        )
    if load is not None and alpha is None:
        raise InputError("Give alpha with load, to predict how that alpha performs.")
    if initial_tasks is not None and load is None:
        raise InputError("initial_tasks is where a system under load starts: give load too.")
    searches = pools is not None and load is None
    if searches and alpha is not None:
        raise InputError(
            "With pools and load_max, alpha is searched for: leave it out, or add load to predict how it performs."
        )
    if seed is not None and not searches:
        raise InputError("seed only affects the search for alpha: give it with load_max and pools, without load.")
    if load_max is not None and load is not None and positive_load(load) > positive_load(load_max, "load_max"):
        raise InputError(f"load must be at most load_max {load_max:g}, not {load:g}.")
