"""Measure the time of the predictions, and of a plain use of SciPy."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from bench.measure import Figure, Rows
from evenly.theory.equilibrium import predict_equilibrium
from evenly.theory.fluid.modes import fill_equations, threshold_gap
from evenly.theory.fluid.predict import predict_fluid

LOAD = 10.5
FULL = float(np.log(LOAD / 0.5))  # time at which initially empty pools reach the threshold


def _seconds(work: Callable[[], object]) -> Callable[[], float]:
    def measure() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return measure


def _plain() -> object:
    """Solve the same equations until shortly before the first event, which a general solver cannot pass."""
    start = np.concatenate([np.ones(9), np.zeros(2)])  # gaps below the threshold, pools above it
    gap_at = threshold_gap(lambda time: LOAD * (1 - float(np.exp(-time))), 10, 12)
    equations = fill_equations(lambda _: LOAD, gap_at, 10, 12)
    return solve_ivp(
        equations.drift, (0, FULL - 1e-3), start, method="BDF", dense_output=True, rtol=1e-10, atol=1e-13
    )


def predictions(rounds: int) -> list[Figure]:
    """Measure fluid solutions and equilibria, after a warm-up."""
    rows = Rows(
        rounds,
        _seconds(lambda: predict_fluid(load=LOAD, horizon=20.0)),
        _seconds(lambda: predict_fluid(load=LOAD, alpha="0.96", horizon=20.0)),
        _seconds(lambda: predict_fluid(load=5.5, alpha="0.93", threshold=9, initial_tasks=9.0, horizon=20.0)),
        _seconds(lambda: predict_equilibrium(load=1e4, threshold=10_100)),
        _seconds(lambda: predict_equilibrium(load=1e4, threshold=9_900)),
        _seconds(_plain),
    )
    names = (
        ("fluid, fixed threshold, load 10.5, horizon 20", 50),
        ("fluid, learning from empty, load 10.5, horizon 20", 100),
        ("fluid, learning from 9 tasks a pool, load 5.5, horizon 20", 100),
        ("equilibrium at load 10,000, threshold 10,100", 10),
        ("equilibrium at load 10,000, threshold 9,900", 10),
    )
    return [
        *(
            Figure(name, 1e3 * rows.median(column), "ms", goal, at_least=False)
            for column, (name, goal) in enumerate(names)
        ),
        Figure("whole fluid solution / SciPy's BDF up to its first event", rows.ratio(0, 5), "times"),
    ]
