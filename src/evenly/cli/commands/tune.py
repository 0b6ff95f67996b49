"""`evenly tune`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenly.cli import options
from evenly.cli.inputs import read_values
from evenly.cli.output import emit, plot_path, wants_json
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

if TYPE_CHECKING:
    from evenly.advice.alpha import Advice
    from evenly.theory.stability.predict import Stability
    from evenly.theory.tuning import Expectations

EXAMPLE = "Example: evenly tune --load-max 10 --pools 100; evenly tune --load 5.5 --alpha 0.93 --initial-load 9"

_KEYS = (
    *("load", "initial_load", "settled_threshold", "optimal", "settle_time_bound"),
    *("pools_measured", "loads", "method", "paper_rule_possible", "paper_rule_met", "candidates"),
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What was found out; None where it was not asked for."""

    load_max: float | None
    alpha: str | None
    pools: int | None
    alpha_min: float | None = None
    suggested: float | None = None
    advice: Advice | None = None
    expected: Expectations | None = None
    stability: Stability | None = None
    stable_pools: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `evenly tune --json`: the same keys whatever was asked."""
        return {
            **dict.fromkeys(_KEYS),
            "load_max": self.load_max,
            "alpha": None if self.alpha is None else float(self.alpha),
            "alpha_min": self.alpha_min,
            "recommended": self.suggested,
            "pools": self.pools,
            "stability": self.stability and self.stability.to_dict(),
            "stable_pools": self.stable_pools,
            **(self.expected.to_dict() if self.expected else {}),
            **(self.advice.to_dict() if self.advice else {}),
        }


def command(
    load_max: options.LoadMax = None,
    load: options.Load = None,
    alpha: options.Alpha = None,
    initial_tasks: options.InitialLoad = None,
    pools: options.Pools = None,
    seed: options.Seed = None,
    plot: options.Plot = None,
    json: options.Json = None,
) -> None:
    """Find an alpha for loads up to --load-max, or say what to expect of --alpha under --load.

    Without --pools the answer is for very many pools.
    """
    values = read_values(locals())
    _check_combination(values)
    picture = plot_path(values)

    from evenly.cli.text import tune as show_tune

    answer = _answer(values)
    if picture is not None and answer.advice is not None:
        from evenly.plots import tune as tune_plot

        tune_plot.draw(answer.advice, picture)
    emit(answer.to_dict, lambda: show_tune.print_answer(answer), as_json=wants_json(values), files=[picture])


def _check_combination(values: dict[str, Any]) -> None:
    """Options that make no question together."""
    if "load" not in values and "load_max" not in values:
        raise InputError(
            "Give --load-max, the largest load, to get an alpha, or --load and --alpha to see what to expect."
        )
    if "load" in values and "alpha" not in values:
        raise InputError("What to expect under --load depends on --alpha: give both.")
    if "initial_tasks" in values and "load" not in values:
        raise InputError("--initial-tasks is where a system under --load starts: give both.")
    searches = "pools" in values and "load" not in values
    if searches and "alpha" in values:
        raise InputError(
            "--pools and --load-max ask for an alpha: leave out --alpha, or add --load to see what to expect."
        )
    if "plot" in values and not searches:
        raise InputError("A picture is drawn of the candidates for alpha: give --load-max and --pools only.")
    if "seed" in values and not searches:
        raise InputError(
            "Chance decides nothing but a search for alpha: give --seed with --load-max and --pools only."
        )


def _answer(values: dict[str, Any]) -> Answer:
    """Put the question to the theory, or measure."""
    from evenly.theory import tuning

    load_max, load, alpha, pools = (values.get(key) for key in ("load_max", "load", "alpha", "pools"))
    if load_max is not None and load is not None and load > load_max:
        raise InputError(f"load must be at most load-max {load_max:g}, not {load:g}.")
    if alpha is not None and pools is not None:
        tuning.check_alpha_for_pools(alpha, pools)
    if alpha is not None and load_max is not None:
        tuning.check_alpha_for_load(alpha, load_max)
    found: dict[str, Any] = {"alpha_min": None if load_max is None else tuning.alpha_min(load_max)}
    if load is not None:
        found |= _expectations(values)
    elif pools is not None:
        found["advice"] = _advice(values)
    elif alpha is None:
        found["suggested"] = tuning.suggested_alpha(values["load_max"])
    return Answer(load_max=load_max, alpha=alpha, pools=pools, **found)


def _expectations(values: dict[str, Any]) -> dict[str, Any]:
    from evenly.theory.tuning import expectations

    load, alpha = values["load"], values["alpha"]
    found: dict[str, Any] = {"expected": expectations(load, alpha, values.get("initial_tasks", 0.0))}
    if "pools" in values:
        from evenly.theory.stability.predict import predict_stability, stable_pools

        with progress_bar("predicting"):
            found["stability"] = predict_stability(pools=values["pools"], load=load, alpha=alpha)
            found["stable_pools"] = stable_pools(load, alpha)
    return found


def _advice(values: dict[str, Any]) -> Advice:
    from evenly.advice.alpha import recommend_alpha

    with progress_bar("measuring") as progress:
        return recommend_alpha(
            pools=values["pools"], load_max=values["load_max"], seed=values.get("seed", 1), progress=progress
        )
