"""A wrong policy turns the right claims red: `evenly paper` runs on copies of the package with a broken policy."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from evenly.core.dispatcher import Dispatcher
from evenly.core.messages import PoolId
from evenly.core.randomness import Choose
from evenly.paper.claims import messages, model
from evenly.paper.claims.claim import Outcome
from evenly.paper.experiments.lab import Lab

T = TypeVar("T")

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Mutation:
    """Edits that break the policy, claims that must turn red, and claims that must not."""

    edits: tuple[tuple[str, str, str], ...]  # file, text that occurs there once, replacement
    red: tuple[str, ...]
    green: tuple[str, ...]


KERNEL, COMMON = "sim/kernels/aggregate.py", "sim/kernels/common.py"
# Without its window, the kernel makes the plain steps that the mutations break.
NO_WINDOW = ("sim/engine.py", 'and scenario.info.name == "threshold"', "and False")
DISPATCHER, POOL, RULE = "core/dispatcher.py", "core/pool.py", "core/learning.py"

# Claims that no threshold policy can affect: about the total number of tasks, and other policies.
OTHERS = (
    "total-is-poisson",
    "total-mass",
    "random-routing-varies-most",
    "random-routing-up-to-15-others",
    "power-of-two-up-to-13-others",
)
# Claims about fixed thresholds.
STATIC = (
    "one-message-in-the-long-run",
    "fluid-limit",
    "floor-of-the-load-balances",
    "whole-loads-have-two-optima",
    "equilibrium-of-a-large-threshold",
    "equilibrium-of-a-small-threshold",
    "fluctuations-are-normal",
    "diffusion-optimal",
    "deviations-of-order-root-n",
)

MUTATIONS = {
    "green tokens are not replaced": Mutation(
        edits=(
            (
                POOL,
                "return self._report(Color.GREEN) if self.tasks < self._threshold else None",
                "return None",
            ),
            (  # the estimate replaces it too
                DISPATCHER,
                "        self.add(pool, 1)\n        return pool\n",
                "        self.add(pool, 1)\n        self._green.discard(pool)\n        return pool\n",
            ),
        ),
        red=(
            "two-tokens-a-pool",
            "tokens-tell-the-truth",
            "dispatching-rule",
            "learning-rule",
            "learning-from-tokens",
        ),
        green=(*OTHERS, *STATIC, "jumps-are-followed"),  # the kernels count tasks and hold no tokens
    ),
    "the threshold is off by one when a task is dispatched": Mutation(
        edits=(
            NO_WINDOW,
            (
                KERNEL,
                "                    if yellow > 0:\n",
                "                    more = pools - at_least[at(threshold + 1)]\n"
                "                    if pools - at_least[at(threshold + 2)] > 0:\n",
            ),
            (
                KERNEL,
                "top = min(threshold - int(green > 0), max_level)",
                "top = min(threshold + 1 - int(more > 0), max_level)",
            ),
            (KERNEL, "int(uniform * green), top)", "int(uniform * more), top)"),
            (
                COMMON,
                "    if green > 0:\n",
                "    green, yellow = yellow, pools - book.at_least[threshold + 2]\n    if green > 0:\n",
            ),
            (COMMON, "        level = threshold\n", "        level = threshold + 1\n"),
            (
                COMMON,
                "    step = int(yellow",
                "    yellow, green = green, pools - book.at_least[threshold] + int(level < threshold)\n"
                "    step = int(yellow",
            ),
        ),
        red=(
            "dispatching-rule",
            "fluid-limit",
            "floor-of-the-load-balances",
            "equilibrium-of-a-large-threshold",
            "equilibrium-of-a-small-threshold",
            "fluctuations-are-normal",
            "diffusion-optimal",
            "learning-fluid-limit",
            "settled-threshold-bounds",
            "few-pools-oscillate",
            "fig4-empty-settles-at-the-bound",
            "threshold-policy-does-as-jsq",
            "jumps-are-followed",
        ),
        green=(*OTHERS, "tokens-tell-the-truth", "two-tokens-a-pool"),  # the core is not broken
    ),
    "learning looks after the arrival": Mutation(
        edits=(
            NO_WINDOW,
            (
                DISPATCHER,
                "        if self._rule is not None:\n            self._pending_step =",
                "        if False:\n            _ =",
            ),
            (
                DISPATCHER,
                "        step, self._pending_step = self._pending_step, 0\n",
                "        step = 0\n"
                "        if self.rule is not None:\n"
                "            step = self.rule.step(len(self._pools), len(self._green), len(self._yellow))\n",
            ),
            (
                KERNEL,
                "                    rise = learning and yellow <= 1\n",
                "                    yellow -= int(level == threshold)\n"
                "                    green -= int(level == threshold - 1)\n"
                "                    rise = learning and yellow <= 1\n",
            ),
            (
                COMMON,
                "    step = int(yellow <= 1)",
                "    yellow -= int(level == threshold)\n"
                "    green -= int(level == threshold - 1)\n"
                "    step = int(yellow <= 1)",
            ),
        ),
        red=("learning-rule", "learning-from-tokens", "few-pools-oscillate", "steadier-with-more-pools"),
        green=(*OTHERS, *STATIC, "dispatching-rule", "tokens-tell-the-truth", "two-messages-a-task"),
    ),
    "the threshold never falls": Mutation(
        edits=(
            NO_WINDOW,
            (KERNEL, "fall = learning and pools - green <= fall_at", "fall = False"),
            (COMMON, " - int(pools - green <= system.fall_at)", ""),
            (RULE, "return int(rise) - int(fall)", "return int(rise)"),
        ),
        red=(
            "learning-rule",
            "learning-from-tokens",
            "learning-fluid-limit",
            "threshold-settles",
            "settled-and-balanced",
            "few-pools-oscillate",
            "more-pools-stay",
            "fig4-full-settles-before-the-bound",
            "jumps-are-followed",
            "slow-waves-are-followed",
        ),
        green=(*OTHERS, *STATIC, "dispatching-rule", "fig4-empty-settles-at-the-bound"),
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_edit_still_matches_the_source(name: str) -> None:
    """The others run in `make full` alone: without this, an edit that matches nothing is found only there."""
    for file, old, _ in MUTATIONS[name].edits:
        assert (SOURCE / "evenly" / file).read_text(encoding="utf-8").count(old) == 1, (file, old)


def broken_copy(folder: Path, mutation: Mutation) -> Path:
    copy = folder / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in mutation.edits:
        file = copy / "evenly" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        file.write_text(text.replace(old, new), encoding="utf-8")
    shutil.copytree(SOURCE.parent / "docs", folder / "docs")  # the report links to the map in it
    return copy


WHOLE = "green tokens are not replaced"  # this one goes through the command

# For the others, only the claims that the mutation names are measured: a whole reproduction takes three times as
# long. Prints those with an unexpected verdict.
MEASURE = """
import json, sys
from evenly.paper.claims import CLAIMS
from evenly.paper.claims.claim import Outcome
from evenly.paper.experiments.lab import Lab

lab = Lab(quick=True)
claims = {claim.name: claim for claim in CLAIMS}
outcomes = {name: Outcome(claims[name], tuple(claims[name].measure(lab))) for name in sys.argv[1:]}
print(json.dumps({"surprises": [name for name, outcome in outcomes.items() if not outcome.as_expected]}))
"""


@pytest.mark.full
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_policy_turns_the_right_claims_red(name: str, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    path = os.pathsep.join([str(broken_copy(tmp_path, mutation)), os.environ.get("PYTHONPATH", "")])
    whole = ["-m", "evenly", "paper", "--quick", "--json", "--out", str(tmp_path / "report")]
    done = subprocess.run(
        [sys.executable, *(whole if name == WHOLE else ["-c", MEASURE, *mutation.red, *mutation.green])],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        check=False,
    )
    assert done.returncode == (1 if name == WHOLE else 0), done.stderr
    red = set(json.loads(done.stdout)["surprises"])
    assert set(mutation.red) <= red, red
    assert red.isdisjoint(mutation.green), red


def _first(pools: Sequence[T]) -> T:
    return pools[0]


@pytest.mark.full
def test_a_preference_among_the_green_pools_turns_the_dispatching_rule_red(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaking only the core takes no copy. A preference for one pool keeps all other rules."""
    honest = Dispatcher.dispatch

    def biased(self: Dispatcher, choose: Choose, avoid: Container[PoolId] = ()) -> PoolId | None:
        return honest(self, _first if self.green else choose, avoid)

    monkeypatch.setattr(Dispatcher, "dispatch", biased)
    lab = Lab(quick=True)
    claims = {claim.name: Outcome(claim, tuple(claim.measure(lab))) for claim in messages.CLAIMS + model.CLAIMS}
    assert [name for name, outcome in claims.items() if not outcome.as_expected] == ["dispatching-rule"]
