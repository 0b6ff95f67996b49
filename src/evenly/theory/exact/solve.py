"""The stationary law of a finite Markov chain: its recurrent class, and the balance equations on it.

Small chains are solved by a sparse LU factorisation, which is the most accurate. Its fill-in explodes with the
number of states, so larger chains are swept instead: ordered by the total number of tasks, every jump leads to a
neighbouring total, and Gauss-Seidel sweeps go up and down the totals. On their own they are slow to find the
probability of each total and of each threshold, so after each sweep these are rescaled to carry equal flows up and
down (aggregation and disaggregation). Either way, the residual is checked and reported.
"""

from collections.abc import Callable
from math import log

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from evenly.theory.exact.chain import Chain, FloatArray, IntArray, total_tasks

LU_STATES = 5_000
"""The largest chain that is factorised rather than swept."""
MAX_SWEEPS = 5_000
FIRST_SWEEPS = 20
"""Enough to find a likely state."""
SWEPT_RESIDUAL = 1e-14
ALLOWED_RESIDUAL = 1e-12
ALLOWED_NEGATIVE = 1e-14


def stationary_law(
    chain: Chain, lu_states: int = LU_STATES, progress: Callable[[float], None] | None = None
) -> tuple[FloatArray, float]:
    """Return the long-run probability of every state (zero where transient), and the relative residual."""
    totals = np.array([total_tasks(state.occupancy) for state in chain.states])
    thresholds = np.array([state.threshold for state in chain.states])
    recurrent = recurrent_states(chain.generator)
    recurrent = recurrent[np.argsort(totals[recurrent], kind="stable")]
    rates = sparse.csr_array(chain.generator[recurrent][:, recurrent])
    law, residual = solve(rates, [thresholds[recurrent], totals[recurrent]], lu_states, progress)
    probability = np.zeros(len(chain.states))
    probability[recurrent] = law
    return probability, residual


def recurrent_states(generator: sparse.csr_array) -> IntArray:
    """Return the states of the one class that the chain ends up in and never leaves."""
    classes, label = connected_components(generator, directed=True, connection="strong")
    rows, columns = generator.nonzero()
    left = np.unique(label[rows][label[rows] != label[columns]])
    closed = np.setdiff1d(np.arange(classes), left)
    if len(closed) != 1:
        raise RuntimeError(f"the chain has {len(closed)} recurrent classes, not one.")
    return np.flatnonzero(label == closed[0])


def solve(
    rates: sparse.csr_array,
    levels: list[IntArray],
    lu_states: int,
    progress: Callable[[float], None] | None = None,
) -> tuple[FloatArray, float]:
    """Return the law with law @ rates = 0, checked, of an irreducible chain in order of total tasks.

    Each of `levels` gives a number per state that a jump changes by one at most.
    """
    if rates.shape[0] <= lu_states:
        law = by_factors(rates, likely_state=int(np.argmax(by_sweeps(rates, levels, FIRST_SWEEPS))))
    else:
        law = by_sweeps(rates, levels, MAX_SWEEPS, progress)
    residual = relative_residual(law, rates)
    if not (residual <= ALLOWED_RESIDUAL and law.min() >= -ALLOWED_NEGATIVE):
        raise RuntimeError(
            f"the balance equations were not solved: residual {residual:.1e}, least {law.min():.1e}."
        )
    law = np.maximum(law, 0.0)
    return law / law.sum(), residual


def relative_residual(law: FloatArray, rates: sparse.csr_array) -> float:
    """Return the 1-norm of law @ rates, relative to the rate at which the chain jumps."""
    return float(np.abs(law @ rates).sum() / (law @ -rates.diagonal()))


def by_factors(rates: sparse.csr_array, likely_state: int) -> FloatArray:
    """Set the weight of one likely state to 1, solve for the others by sparse LU, and normalise."""
    others = np.delete(np.arange(rates.shape[0]), likely_state)
    balance = sparse.csc_array(rates.T)
    factors = splu(
        sparse.csc_array(balance[others][:, others]),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    law: FloatArray = np.ones(rates.shape[0])
    law[others] = factors.solve(-balance[:, [likely_state]].toarray().ravel()[others])
    law /= law.sum()
    return law


def by_sweeps(
    rates: sparse.csr_array,
    levels: list[IntArray],
    sweeps: int,
    progress: Callable[[float], None] | None = None,
) -> FloatArray:
    """Solve by Gauss-Seidel sweeps up and down the total, each followed by a rebalancing of the levels.

    The residual falls geometrically: its logarithm says how much is done.
    """
    balance = sparse.csr_array(rates.T)
    up = triangular_solver(sparse.tril(balance))
    down = triangular_solver(sparse.triu(balance))
    above, below = sparse.csr_array(sparse.triu(balance, 1)), sparse.csr_array(sparse.tril(balance, -1))
    balancers = [flow_balancer(rates, level) for level in levels if np.ptp(level)]
    law = np.full(rates.shape[0], 1 / rates.shape[0])
    for _ in range(sweeps):
        law = up(-(above @ law))
        law = down(-(below @ law))
        for balanced in balancers:
            law = balanced(law)
        law /= law.sum()
        residual = relative_residual(law, rates)
        if residual < SWEPT_RESIDUAL:
            break
        if progress is not None:
            progress(min(log(residual) / log(SWEPT_RESIDUAL), 1.0) if residual < 1 else 0.0)
    return law


def triangular_solver(matrix: sparse.sparray) -> Callable[[FloatArray], FloatArray]:
    """Return a solver for a triangular matrix, whose factors in the given order have no fill-in."""
    factors = splu(
        sparse.csc_array(matrix),
        permc_spec="NATURAL",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return factors.solve


def flow_balancer(rates: sparse.csr_array, level: IntArray) -> Callable[[FloatArray], FloatArray]:
    """Return a function that rescales a law by level, to equal flows up and down between neighbouring levels."""
    jumps = rates.tocoo()
    source, target = level[jumps.row], level[jumps.col]
    size = int(level.max()) + 1

    def flow(law: FloatArray, which: IntArray) -> FloatArray:
        lower = np.minimum(source, target)[which]
        weights: FloatArray = law[jumps.row[which]] * jumps.data[which]
        return np.bincount(lower, weights, minlength=size).astype(np.float64)

    up, down = np.flatnonzero(target > source), np.flatnonzero(target < source)

    def balanced(law: FloatArray) -> FloatArray:
        flow_up, flow_down = flow(law, up), flow(law, down)
        known = (flow_up > 0) & (flow_down > 0)
        log_ratio = np.zeros(size)
        log_ratio[known] = np.log(flow_up[known]) - np.log(flow_down[known])
        log_weight = np.concatenate([[0.0], np.cumsum(log_ratio)[:-1]])[level]
        weight: FloatArray = np.exp(log_weight - log_weight.max())
        return law * weight

    return balanced
