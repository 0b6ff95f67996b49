"""Measure what late messages cost: the spread over 100 pools against the delay, for five policies.

Tasks and messages take time: always the same, or an exponential time for each. All policies see the same arrivals,
departures and delays of tasks. Delays are in mean task times.

    python -m examples.late_messages --out docs/images/late-messages.png
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes

from evenly import Comparison, Scenario, compare
from evenly.plots.style import BLUE, GREEN, INK, ORANGE, PURPLE, RED, saved_figure

DELAYS, QUICK_DELAYS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (0.01, 0.1)
KINDS = {"": "every message takes the delay", "exponential:": "exponential delays with this mean"}
SYSTEM = Scenario(pools=100, load=5.5, initial_tasks=5.5, horizon=5000, warmup=200)
QUICK_SYSTEM = replace(SYSTEM, pools=20, horizon=60, warmup=10)
POLICIES = {
    "stale-reports": (PURPLE, "v", "-"),
    "random": (RED, "o", "-"),
    "power-of-d": (ORANGE, "s", "-"),
    "jsq": (BLUE, "^", "-"),
    "threshold": (GREEN, "D", "--"),
}
NAMES = {"power-of-d": "power-of-2", "threshold": "threshold, alpha 0.9"}


def measured(system: Scenario, delay: str) -> Comparison:
    """Simulate all policies with this delay, on the same random numbers."""
    return compare(
        [
            replace(system, policy=policy, delay=delay, alpha="0.9" if policy == "threshold" else None)
            for policy in POLICIES
        ],
        seed=1,
    )


def print_row(delay: str, found: Comparison) -> None:
    """Print the spread of each policy, and what the threshold policy costs."""
    spreads = "  ".join(f"{result.spread:13.3f}" for result in found)
    learned = found[list(POLICIES).index("threshold")]
    print(f"{delay:>17}  {spreads}  {learned.threshold:9.2f} {learned.messages_per_task:8.3f}")


def draw(axes: Axes, delays: Sequence[float], found: Sequence[Comparison], at_once: float) -> None:
    """Draw a line per policy."""
    axes.axhline(at_once, color=INK, linewidth=1, linestyle=":", label="jsq without delays")
    for place, (policy, (color, marker, dash)) in enumerate(POLICIES.items()):
        spreads = [comparison[place].spread for comparison in found]
        name = NAMES.get(policy, policy)
        # Where the threshold policy covers JSQ, the larger mark below shows that both are there.
        size = 8 if policy == "jsq" else 4
        axes.plot(delays, spreads, color=color, marker=marker, markersize=size, linestyle=dash, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([0.001, 0.01, 0.1, 1], ["0.001", "0.01", "0.1", "1"])
    axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_xlabel("delay, in mean task times")


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("late-messages.png"), help="file to write")
    parser.add_argument("--quick", action="store_true", help="run few and short simulations")
    asked = parser.parse_args(arguments)
    system, delays = (QUICK_SYSTEM, QUICK_DELAYS) if asked.quick else (SYSTEM, DELAYS)
    at_once = measured(system, "0")
    print(f"{system.setting}. Spread by policy, then the threshold, and its messages per task:\n")
    print(f"{'delay':>17}  " + "  ".join(f"{policy:>13}" for policy in POLICIES), end="")
    print(f"  {'threshold':>9} {'messages':>8}")
    print_row("0", at_once)
    jsq = at_once[list(POLICIES).index("jsq")].spread
    with saved_figure(asked.out, 9.0, 4.6) as figure:
        panels = figure.subplots(1, len(KINDS), sharey=True)
        for axes, (kind, title) in zip(panels, KINDS.items(), strict=True):
            found = [measured(system, f"{kind}{delay:g}") for delay in delays]
            for delay, comparison in zip(delays, found, strict=True):
                print_row(f"{kind}{delay:g}", comparison)
            draw(axes, delays, found, jsq)
            axes.set_title(title, fontsize=10)
        panels[0].set_ylabel("spread: standard deviation over pools")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    print(f"\nwrote {asked.out}")


if __name__ == "__main__":
    main()
