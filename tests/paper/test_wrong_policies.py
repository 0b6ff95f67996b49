"""A wrong policy turns the right claims red: `evenly paper` is run on copies of the package that break it."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Mutation:
    """Edits of the policy's homes, claims that must turn red, and claims that must not."""

    edits: tuple[tuple[str, str, str], ...]  # file, text that occurs there once, what replaces it
    red: tuple[str, ...]
    green: tuple[str, ...]


KERNEL, COMMON = "sim/aggregate.py", "sim/common_kernel.py"
DISPATCHER, POOL, RULE = "core/dispatcher.py", "core/pool.py", "core/learning.py"

# What no threshold policy can change: the total number of tasks, and other policies.
OTHERS = (
    "total-is-poisson",
    "total-mass",
    "random-routing-varies-most",
    "random-routing-up-to-15-others",
    "power-of-two-up-to-13-others",
)
# What only looks at thresholds that stay.
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
                "return self._message(Color.GREEN) if self.tasks < self._notice.threshold else None",
                "return None",
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
        green=(*OTHERS, "tokens-tell-the-truth", "two-tokens-a-pool"),  # the core is left alone
    ),
    "learning looks after the arrival": Mutation(
        edits=(
            (
                DISPATCHER,
                "        if self._rule is not None:\n            self._verdict =",
                "        if False:\n            _ =",
            ),
            (
                DISPATCHER,
                "        step, self._verdict = self._verdict, 0\n",
                "        step = 0\n"
                "        if self._rule is not None:\n"
                "            step = self._rule.step(len(self._pools), len(self._green), len(self._yellow))\n",
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
    "yellow tokens are used although there are green ones": Mutation(
        edits=(
            (DISPATCHER, "tokens = self._green or self._yellow", "tokens = self._yellow"),
            (KERNEL, "top = min(threshold - int(green > 0), max_level)", "top = min(threshold, max_level)"),
            (KERNEL, "int(uniform * green), top)", "int(uniform * yellow), top)"),
            (COMMON, "    if green > 0:\n", "    if yellow > 0:\n"),
            (COMMON, "int(selection * green)", "int(selection * yellow)"),
        ),
        red=(
            "tokens-tell-the-truth",
            "dispatching-rule",
            "fluid-limit",
            "floor-of-the-load-balances",
            "no-other-threshold-balances",
            "equilibrium-of-a-large-threshold",
            "diffusion-optimal",
            "learning-rule",
            "settled-threshold-bounds",
            "threshold-policy-does-as-jsq",
        ),
        green=OTHERS,
    ),
    "the first of the green pools is preferred": Mutation(
        edits=(
            (
                DISPATCHER,
                "        pool = choose(tokens or self._pools)\n",
                "        pool = min(self._green) if self._green else choose(tokens or self._pools)\n",
            ),
        ),
        red=("dispatching-rule",),
        green=(*OTHERS, *STATIC, "tokens-tell-the-truth", "two-messages-a-task"),  # all but the choice is right
    ),
    "the threshold never falls": Mutation(
        edits=(
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


def broken_copy(folder: Path, mutation: Mutation) -> Path:
    copy = folder / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in mutation.edits:
        file = copy / "evenly" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, (name, old)
        file.write_text(text.replace(old, new), encoding="utf-8")
    shutil.copytree(SOURCE.parent / "docs", folder / "docs")  # the map that the report leads to
    return copy


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_policy_turns_the_right_claims_red(name: str, tmp_path: Path) -> None:
    mutation = MUTATIONS[name]
    path = os.pathsep.join([str(broken_copy(tmp_path, mutation)), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "evenly", "paper", "--quick", "--json", "--out", str(tmp_path / "report")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    red = set(json.loads(done.stdout)["surprises"])
    assert set(mutation.red) <= red, red
    assert red.isdisjoint(mutation.green), red
