"""Predict the diffusion limit that holds for a load, and what it means for a number of pools."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from evenly.errors import InputError
from evenly.inputs import accept_other_names, shown, whole_number
from evenly.theory.balance import FloatArray
from evenly.theory.diffusion.fractional import MAX_POOLS, OrnsteinUhlenbeck, is_whole, ornstein_uhlenbeck
from evenly.theory.diffusion.result import ORNSTEIN_UHLENBECK, REFLECTED, DiffusionLimit
from evenly.theory.diffusion.whole import STEP, reflected
from evenly.theory.diffusion.whole_law import stationary_summary
from evenly.theory.inputs import positive_load

MAX_POINTS = 10**5
MAX_VALUES = 10**6  # on all paths
MAX_STEPS = 250_000  # of each path, within half a minute
MAX_MOVES = 2 * 10**7  # steps times paths
PATHS = 5


@accept_other_names
def predict_diffusion(
    *,
    load: float,
    pools: int | None = None,
    limit: str | None = None,
    horizon: float = 10.0,
    points: int = 201,
    paths: int | None = None,
    seed: int = 1,
) -> DiffusionLimit:
    """Predict how a balanced system fluctuates: the stationary law, and sample paths from the balanced state.

    With `pools`, the result also describes a system of this size. A `limit` that does not hold for the load is
    rejected. `paths` is 5 by default, or 0 if the load is too large to draw paths; the stationary law does not
    need them. `horizon` is in mean task times.

    Paper: Thms 3 and 4.
    """
    load = positive_load(load)
    own_limit = REFLECTED if is_whole(load) else ORNSTEIN_UHLENBECK
    name = own_limit if limit is None else limit
    if not isinstance(name, str) or name not in _DESCRIBE:
        raise InputError(f"limit must be {' or '.join(_DESCRIBE)}, not {shown(name)}.")
    points = whole_number("points", points, 2, MAX_POINTS)
    seed = whole_number("seed", seed, 0, 2**64 - 1)
    pools = None if pools is None else whole_number("pools", pools, 1, MAX_POOLS)
    times = np.linspace(0.0, positive_load(horizon, "horizon"), points)
    paths = _affordable_paths(paths, times, load if name == REFLECTED else 0.0)
    return DiffusionLimit(
        load=load,
        limit=name,
        pools=pools,
        horizon=float(horizon),
        points=points,
        paths=paths,
        seed=seed,
        times=times,
        variance=np.array([OrnsteinUhlenbeck(load).variance(time) for time in times.tolist()]),
        **_DESCRIBE[name](load, times, paths, np.random.default_rng(seed), pools),
    )


def _affordable_paths(paths: int | None, times: FloatArray, load: float) -> int:
    """Return the number of paths, if it can be drawn in half a minute; large whole loads need short steps."""
    steps = times.size + ceil(times[-1] * (load + 1) / STEP) * (load > 0)
    most = 0 if steps > MAX_STEPS else min(MAX_VALUES // times.size, MAX_MOVES // steps)
    if paths is None:
        return min(PATHS, most)
    if whole_number("paths", paths, 0, MAX_VALUES) > most:
        reason = f"{times.size} points each" if most == MAX_VALUES // times.size else f"{steps:.3g} steps each"
        raise InputError(
            f"paths must be at most {most} with {reason}, not {paths}: reduce paths, points or horizon."
        )
    return int(paths)


def _describe_smooth(
    load: float, times: FloatArray, paths: int, rng: np.random.Generator, pools: int | None
) -> dict[str, Any]:
    process, level = ornstein_uhlenbeck(load), ceil(load)
    total = process.sample_path(times, rng, start=0.0, paths=paths) if paths else np.empty((0, times.size))
    return {
        "stationary": process,
        "occupancy_mean": None if pools is None else {level: process.occupancy_mean},
        "occupancy_deviation": None if pools is None else {level: process.occupancy_deviation(pools)},
        "saturated_share": None,
        "sample_paths": {"total": total},
    }


def _describe_reflected(
    load: float, times: FloatArray, paths: int, rng: np.random.Generator, pools: int | None
) -> dict[str, Any]:
    summary = stationary_summary(load)
    levels = {} if pools is None else summary.occupancy(pools)
    return {
        "stationary": summary,
        "occupancy_mean": {level: mean for level, (mean, _) in levels.items()} or None,
        "occupancy_deviation": {level: deviation for level, (_, deviation) in levels.items()} or None,
        "saturated_share": None if pools is None else summary.saturated_share(pools),
        "sample_paths": _reflected_paths(load, times, paths, rng),
    }


def _reflected_paths(
    load: float, times: FloatArray, paths: int, rng: np.random.Generator
) -> dict[str, FloatArray]:
    if paths == 0:
        return {"below": np.empty((0, times.size)), "above": np.empty((0, times.size))}
    sampled = reflected(load).sample_path(times, rng, start=(0.0, 0.0), paths=paths)
    return {"below": sampled.below, "above": sampled.above[:, :, 0]}


_DESCRIBE = {ORNSTEIN_UHLENBECK: _describe_smooth, REFLECTED: _describe_reflected}
