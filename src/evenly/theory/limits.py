"""The diffusion limit that holds for a load, and what it says of a number of pools: ready for JSON."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np

from evenly.errors import InputError
from evenly.theory.balance import FloatArray
from evenly.theory.diffusion import OrnsteinUhlenbeck, is_whole, ornstein_uhlenbeck
from evenly.theory.inputs import positive_load, whole_number
from evenly.theory.reflected import reflected
from evenly.theory.reflected_law import stationary_summary

ORNSTEIN_UHLENBECK, REFLECTED = "ornstein-uhlenbeck", "reflected"
MAX_VALUES = 10**6  # on all paths


def diffusion_limit(
    load: float,
    *,
    limit: str | None = None,
    pools: int | None = None,
    horizon: float = 10.0,
    points: int = 201,
    paths: int = 5,
    seed: int = 1,
) -> dict[str, Any]:
    """The limit for a load: its long run, that of so many pools, and paths from the balanced state.

    `variance` is that of the total number of tasks at each time. A `limit` other than the load's is refused.

    Paper: Thms 3 and 4.
    """
    name = limit or (REFLECTED if is_whole(load) else ORNSTEIN_UHLENBECK)
    if name not in _DESCRIBE:
        raise InputError(f"limit must be {' or '.join(_DESCRIBE)}, not {name}.")
    whole_number("points", points, 2, MAX_VALUES)
    whole_number("paths", paths, 1, MAX_VALUES // points)
    whole_number("seed", seed, 0, 2**64 - 1)
    times = np.linspace(0.0, positive_load(horizon, "horizon"), points)
    own = _DESCRIBE[name](load, times, paths, np.random.default_rng(seed), pools)
    return {
        "load": float(load),
        "limit": name,
        "threshold": floor(load),
        "pools": pools,
        "horizon": float(horizon),
        "points": points,
        "paths": paths,
        "seed": seed,
        **own,
        "times": times.tolist(),
        "variance": [OrnsteinUhlenbeck(load).variance(time) for time in times.tolist()],
    }


def _describe_smooth(
    load: float, times: FloatArray, paths: int, rng: np.random.Generator, pools: int | None
) -> dict[str, Any]:
    process, level = ornstein_uhlenbeck(load), str(ceil(load))
    return {
        "stationary": process.to_dict(),
        "occupancy_mean": None if pools is None else {level: process.occupancy_mean},
        "occupancy_deviation": None if pools is None else {level: process.occupancy_deviation(pools)},
        "saturated_share": None,
        "sample_paths": {"total": process.sample_path(times, rng, start=0.0, paths=paths).tolist()},
    }


def _describe_reflected(
    load: float, times: FloatArray, paths: int, rng: np.random.Generator, pools: int | None
) -> dict[str, Any]:
    sampled = reflected(load).sample_path(times, rng, start=(0.0, 0.0), paths=paths)
    summary = stationary_summary(load)
    levels = {} if pools is None else summary.occupancy(pools)
    return {
        "stationary": summary.to_dict(),
        "occupancy_mean": {str(level): mean for level, (mean, _) in levels.items()} or None,
        "occupancy_deviation": {str(level): deviation for level, (_, deviation) in levels.items()} or None,
        "saturated_share": None if pools is None else summary.saturated_share(pools),
        "sample_paths": {"below": sampled.below.tolist(), "above": sampled.above[:, :, 0].tolist()},
    }


_DESCRIBE = {ORNSTEIN_UHLENBECK: _describe_smooth, REFLECTED: _describe_reflected}
