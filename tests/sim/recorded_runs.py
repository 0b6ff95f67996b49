"""Runs that were recorded once: a seed means the same decisions on every processor.

python -m tests.sim.recorded_runs    record them again, after a change that changes what seeds mean
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evenly.sim import Scenario, simulate

FILE = Path(__file__).with_suffix(".json")
# One system per compiled loop.
SYSTEMS: dict[str, dict[str, Any]] = {
    "window": {"pools": 40, "load": 5.5, "alpha": "0.9"},
    "aggregate": {"pools": 40, "schedule": "0:2~1/3", "policy": "power-of-d", "sample_size": 3},
    "per pool": {"pools": 40, "load": 2.3, "policy": "round-robin", "capacity": 4},
    "unequal": {"sizes": "10*1,10*3", "load": 3.0, "alpha": "0.8"},
    "sessions": {
        "pools": 20,
        "load": 2.3,
        "alpha": "0.8",
        "service": "lognormal:cv=4",
        "arrivals": "renewal:cv=2",
    },
    "sized sessions": {"sizes": "10*1,10*3", "load": 3.0, "alpha": "0.8", "service": "lognormal:cv=4"},
    "late messages": {"pools": 20, "load": 2.3, "alpha": "0.8", "delay": "exponential:0.05"},
}


def run(name: str) -> dict[str, Any]:
    """Return the decisions of a run, as whole numbers, and some of its times and averages."""
    result = simulate(Scenario(horizon=30.0, **SYSTEMS[name]), seed=2026, points=7)
    [path] = result.trajectories
    return {
        "events": result.events,
        "pools_at_least": path.pools_at_least.tolist(),
        "change_thresholds": path.change_thresholds.tolist(),
        "messages": {
            kind: count for kind, count in result.to_dict()["messages"].items() if isinstance(count, int)
        },
        "change_times": path.change_times.tolist(),
        "averages": [result.spread, result.imbalance, result.max_tasks, result.mean_tasks],
    }


if __name__ == "__main__":
    recorded = {name: run(name) for name in SYSTEMS}
    lines = (f'"{name}": {json.dumps(values)}' for name, values in recorded.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
