"""`evenly exact` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenly.cli.text.common import histogram, percent
from evenly.plots.names import policy_name

if TYPE_CHECKING:
    from evenly.theory.exact import ExactLaw


def exact_text(law: ExactLaw) -> str:
    """What `evenly exact` prints."""
    facts = law.to_dict()
    name = policy_name(law.policy, threshold=law.threshold_start, alpha=law.alpha, choices=law.sample_size)
    lines = [
        f"{name}: {law.pools:,} pools, load {law.load:g}, exact from {law.states:,} states",
        "",
        f"  tasks per pool      {law.mean_tasks:.6f}",
        f"  fullest pool        {law.max_tasks_mean:.6f}",
        f"  spread over pools   {law.spread_mean:.6f}",
        f"  imbalance           {law.imbalance_mean:.6f}",
    ]
    if facts["messages"]:
        lines.append(
            f"  messages per task   {facts['messages']['per_task']:.6f}, "
            f"and {facts['messages']['resync_per_task']:.6f} to resync"
        )
    if facts["threshold"]:
        shares = ", ".join(f"{level}: {percent(share)}" for level, share in facts["threshold"]["time_at"].items())
        lines.append(f"  threshold           {facts['threshold']['mean']:.6f} on average ({shares})")
    if law.capacity is not None:
        lines.append(f"  tasks lost          {percent(facts['lost'])}")
    return "\n".join([*lines, "", *histogram(facts["pools_with_exactly"], "pools")])
