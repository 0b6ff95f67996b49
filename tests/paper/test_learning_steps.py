"""The learning rule as written for the claims: on states, on tokens, event by event."""

from fractions import Fraction

import numpy as np
import pytest

from evenly.paper.claims.coupling import passage_probability
from evenly.paper.experiments.learning_steps import StateReview, Step, TokenReview, core_steps, due, kernel_steps
from evenly.sim import Scenario


@pytest.mark.parametrize(
    ("at_least", "threshold", "alpha", "change"),
    [
        ([10, 10, 9], 1, "0.5", 1),  # all but one above the threshold
        ([10, 10, 8], 1, "0.5", 0),
        ([10, 8, 0], 1, "0.8", -1),  # the fraction alpha itself counts
        ([100, 57], 1, "0.57", -1),  # 0.57 as written, not as a float
        ([10, 9, 9], 1, "0.95", 0),  # both at once
        ([10, 10], 4, "0.5", -1),  # a level that no pool reaches
        ([10, 0], 0, "0.9", 0),  # all pools have at least 0 tasks
        ([1, 0], 0, "0.9", 1),  # a single pool is all but one
    ],
)
def test_the_change_that_a_state_asks_for(at_least: list[int], threshold: int, alpha: str, change: int) -> None:
    assert due(at_least, threshold, Fraction(alpha)) == change


def test_an_event_is_judged_by_the_state_before_it() -> None:
    early = Step(True, [10, 10, 8], [10, 10, 9], threshold=1, change=1)  # rises because of the state after it
    right = Step(True, [10, 10, 8], [10, 10, 9], threshold=1, change=0)
    late = Step(False, [10, 10, 9], [10, 9, 9], threshold=1, change=1)  # changes at a departure
    for step, wrong, hindsight in ((early, 1, 1), (right, 0, 1), (late, 1, 0)):
        review = StateReview()
        review.add([step], Fraction(1, 2))
        assert (review.wrong, review.hindsight) == (wrong, hindsight)


def test_tokens_are_compared_with_the_tasks() -> None:
    # One pool has no task, below a threshold of 2, and nine have 3: it has both tokens, and keeps the yellow one.
    rise = Step(True, [10, 9, 9, 9], [10, 10, 9, 9], threshold=2, change=1, green=1, yellow=1)
    lost = Step(True, [10, 8, 8, 8], [10, 9, 8, 8], threshold=2, change=0, green=1, yellow=2)
    review = TokenReview()
    review.add([rise, lost], Fraction(1, 2))
    assert (review.arrivals, review.wrong, review.unlike, review.by_the_letter) == (2, 0, 1, 1)


@pytest.mark.parametrize(("yellow", "green", "up"), [(0, 0, 1), (1, 0, 1), (1, 1, 0), (2, 0, 0)])
def test_the_paper_s_words_about_yellow_tokens(yellow: int, green: int, up: int) -> None:
    """Up if there is none, or none would be left: a yellow token is used only when there is no green one."""
    pools = 10
    before = [pools, pools - green, pools - yellow]
    review = TokenReview()
    review.add([Step(True, before, before, threshold=1, change=up, green=green, yellow=yellow)], Fraction(1, 2))
    assert (review.unlike, review.by_the_letter) == (0, 0)


def test_kernel_and_core_take_the_same_steps() -> None:
    scenario = Scenario(pools=5, load=2.4, alpha="0.6")
    kernel, core = (
        [(step.arrival, step.before, step.change) for step in watch(scenario, np.random.SeedSequence(3), 300)]
        for watch in (kernel_steps, core_steps)
    )
    assert kernel == core


def test_the_passage_probability_is_that_of_two_states_solved_by_hand() -> None:
    """A pool with one task: a second one comes at rate 0.6, or it empties at rate 1 and fills at rate 0.6."""
    values, vectors = np.linalg.eig(np.array([[-0.6, 1.0], [0.6, -1.6]]))
    alive = (vectors * np.exp(values)) @ np.linalg.solve(vectors, [0.0, 1.0])
    assert passage_probability(1, 0.6, 1, 1.0) == pytest.approx(1 - alive.sum(), abs=1e-12)
