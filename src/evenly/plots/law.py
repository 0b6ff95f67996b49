"""The exact law of a small system as bars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.ticker import MaxNLocator

from evenly.plots.names import policy_name
from evenly.plots.style import BLUE, GREEN, ORANGE, picture
from evenly.theory.exact.law import ExactLaw

_VISIBLE = 1e-4


def draw(law: ExactLaw, path: Path) -> None:
    """Pools by tasks, the fullest pool and, if there is one, the threshold."""
    panels = [
        ("tasks in a pool", law.pools_with_exactly, BLUE),
        ("tasks in the fullest pool", law.max_tasks_distribution, ORANGE),
    ]
    if law.threshold_distribution:
        shares = np.zeros(max(law.threshold_distribution) + 1)
        shares[list(law.threshold_distribution)] = list(law.threshold_distribution.values())
        panels.append(("threshold", shares, GREEN))
    with picture(path, 3.2 * len(panels), 3.2) as figure:
        for place, (label, shares, color) in enumerate(panels):
            axes = figure.add_subplot(1, len(panels), place + 1)
            seen = np.flatnonzero(shares > _VISIBLE)
            axes.bar(seen, shares[seen], color=color)
            axes.set_xlabel(label)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            if place == 0:
                axes.set_ylabel("probability")
        name = policy_name(law.policy, threshold=law.threshold_start, alpha=law.alpha, choices=law.sample_size)
        figure.suptitle(f"{name}, {law.pools} pools, load {law.load:g}: exact", fontsize=10)
