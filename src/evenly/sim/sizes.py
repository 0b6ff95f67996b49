"""What a scenario needs to know about pools of different sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenly.core.cut import Cut
from evenly.errors import InputError
from evenly.inputs import whole_number
from evenly.policies import SIZED
from evenly.workload.pools import find_utility

if TYPE_CHECKING:
    from evenly.sim.scenario import Scenario

MAX_INDEX = 10**5  # of a fixed or initial threshold: the cut is moved there step by step
MAX_TASKS = 10**5  # expected in the fullest pool: the marginal utilities up to there are computed one by one


def check_sizes(scenario: Scenario) -> None:
    """Reject a scenario whose policy or parameters do not fit pools of different sizes."""
    if not scenario.sized:
        if scenario.utility is not None:
            raise InputError("utility is for pools with sizes, such as 80*1,20*4, or for a policy of such pools.")
        return
    if scenario.policy not in SIZED:
        raise InputError(f"sizes is for policy {', '.join(SIZED)}, not {scenario.info.name}.")
    find_utility(scenario.measure)
    count = sum(each.count for each in scenario.classes)
    if scenario.pools != count:
        raise InputError(f"pools must be {count}, as many as sizes has, or left out, not {scenario.pools}.")
    if scenario.policy == "threshold-utility" and scenario.threshold is not None:
        whole_number("threshold", scenario.threshold, 0, MAX_INDEX, why="with sizes")
    for name, given in (("capacity", scenario.capacity), ("delay", scenario.message_delay.mean or None)):
        if given is not None:
            raise InputError(f"Pools with sizes take no {name}.")
    peak = max(phase.load + phase.amplitude for phase in scenario.phases)
    if most_tasks(scenario, peak) > MAX_TASKS:
        raise InputError(
            f"A pool of the largest size would have about {most_tasks(scenario, peak):.2g} tasks, more than "
            f"{MAX_TASKS}: reduce load or the differences in size."
        )


def most_tasks(scenario: Scenario, load: float) -> float:
    """Return about how many tasks a pool of the largest size has at a load, in proportion to the sizes."""
    classes = scenario.classes
    mean = sum(each.count * each.size for each in classes) / sum(each.count for each in classes)
    return load * max(each.size for each in classes) / mean


def best_index(scenario: Scenario, load: float) -> int:
    """Return the best index at a load: the largest whose thresholds add up to at most that many tasks."""
    cut = Cut(find_utility(scenario.measure).marginal)
    for each in scenario.classes:
        cut.add(each.size, keep_index=True, pools=each.count)
    return cut.index_for(load * scenario.pools)
