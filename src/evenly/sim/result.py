"""What a simulation found: time averages with their intervals, trajectories; saved, loaded, as tables."""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import InputError
from evenly.files import atomic_write
from evenly.sim.intervals import BATCH_TASKS, half_width
from evenly.sim.scenario import Scenario
from evenly.sim.tally import Averages, Tally, averages, total
from evenly.workload.demand import Phase

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

FORMAT = 1  # of saved files
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
)  # what garbage can raise


@dataclass(frozen=True)
class Trajectory:
    """One replication over time: snapshots at evenly spaced times, and every change of the threshold.

    Paper: m(t) is `max_tasks` and e(t) is `imbalance`, Sec. 5.3.
    """

    times: NDArray[np.float64]
    pools_at_least: NDArray[np.int64]  # row: a time, column: number of tasks
    threshold: NDArray[np.int64]  # -1 for policies without one
    max_tasks: NDArray[np.int64]
    imbalance: NDArray[np.float64]
    demand: NDArray[np.float64]
    tokens_held: NDArray[np.int64]  # under join-idle-queue, join-below-threshold and pull; else 0
    change_times: NDArray[np.float64]
    change_thresholds: NDArray[np.int64]

    @property
    def occupancy(self) -> NDArray[np.float64]:
        """Fraction of pools with at least i tasks."""
        return np.asarray(self.pools_at_least / self.pools_at_least[0, 0])

    def tokens(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Green and yellow tokens at the dispatcher."""
        if self.threshold[0] < 0:
            raise InputError("Only the threshold policy has green and yellow tokens.")
        rows = np.arange(self.times.size)
        pools = self.pools_at_least[0, 0]
        padded = np.pad(self.pools_at_least, ((0, 0), (0, max(0, int(self.threshold.max()) + 2))))
        return pools - padded[rows, self.threshold], pools - padded[rows, self.threshold + 1]

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns, a row a time."""
        columns: dict[str, NDArray[Any]] = {
            "time": self.times,
            "demand": self.demand,
            "mean_tasks": self.occupancy[:, 1:].sum(axis=1),
            "max_tasks": self.max_tasks,
            "imbalance": self.imbalance,
        }
        if self.threshold[0] >= 0:
            green, yellow = self.tokens()
            columns |= {"threshold": self.threshold, "green_tokens": green, "yellow_tokens": yellow}
        elif self.tokens_held.any():
            columns["tokens"] = self.tokens_held
        return columns


@dataclass(frozen=True)
class Ending:
    """Where the threshold of one replication ended, and since when it had been there."""

    threshold: int
    since: float


@dataclass(frozen=True, kw_only=True)
class Result:
    """A scenario simulated. `samples` are the independent windows that the intervals rest on."""

    scenario: Scenario
    seed: int
    replications: int
    batches: int
    steady_state: bool
    seconds: float
    events: int
    samples: list[Tally]
    endings: list[Ending]
    trajectories: list[Trajectory]

    @cached_property
    def window(self) -> Tally:
        """All that was recorded after the warm-up, in all replications."""
        return total(self.samples)

    @cached_property
    def averages(self) -> Averages:
        """Time averages after the warm-up."""
        return averages(self.window, self.scenario.pools)

    @cached_property
    def ci95(self) -> dict[str, float] | None:
        """Half-widths of the 95 % intervals; none from a single sample, nor from batches too short to be apart."""
        if len(self.samples) < 2:
            return None
        if self.batches and self.samples[0].time * self.scenario.service_rate < 0.999 * BATCH_TASKS:
            return None
        rows = [averages(sample, self.scenario.pools).scalars() for sample in self.samples]
        return {name: half_width([row[name] for row in rows]) for name in rows[0]}

    def share_above(self, tasks: int) -> float:
        """Share of tasks that sit in a pool with more than so many."""
        return float(self.averages.task_share[tasks + 1 :].sum())

    def utility(self, quality: Callable[[float], float]) -> float:
        """Time average of the overall utility: the sum over pools of X * quality(1 / X), X tasks there.

        It is maximal when the load is balanced if `quality` is concave and increasing.

        Paper: Sec. 2.
        """
        shares = self.averages.pools_with_exactly
        return self.scenario.pools * sum(
            float(shares[tasks]) * tasks * quality(1 / tasks) for tasks in range(1, shares.size)
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of `evenly simulate --json`."""
        scenario, means, window = self.scenario, self.averages, self.window
        return {
            "policy": scenario.policy,
            "pools": scenario.pools,
            "load": scenario.load_at_start,
            "schedule": None if scenario.schedule is None else ",".join(map(str, scenario.phases)),
            "alpha": None if scenario.alpha is None else float(scenario.alpha),
            "capacity": scenario.capacity,
            "service_rate": scenario.service_rate,
            "horizon": scenario.horizon,
            "warmup": scenario.warmup,
            "seed": self.seed,
            "replications": self.replications,
            "batches": self.batches,
            "steady_state": self.steady_state,
            "events": self.events,
            "seconds": self.seconds,
            "mean_tasks": means.mean_tasks,
            "pools_with_exactly": means.pools_with_exactly.tolist(),
            "task_share": means.task_share.tolist(),
            "max_tasks": {"mean": means.max_tasks, "distribution": means.max_distribution.tolist()},
            "spread": {"mean": means.spread},
            "imbalance": {"mean": means.imbalance},
            "threshold": self._threshold_dict(),
            "messages": {
                "green": window.green,
                "yellow": window.yellow,
                "resync": window.resync,
                "other": window.other,
                "tasks": window.arrivals,
                "per_task": means.messages_per_task,
            },
            "unguided": window.unguided,
            "lost": window.lost,
            "ci95": self.ci95,
        }

    def _threshold_dict(self) -> dict[str, Any] | None:
        if not self.endings:
            return None
        return {
            "initial": self.scenario.initial_threshold,
            "final": Counter(ending.threshold for ending in self.endings).most_common(1)[0][0],
            "mean": self.averages.threshold,
            "time_at": {str(level): share for level, share in self.averages.threshold_time_at.items()},
            "changes": self.window.changes,
            "settled_at": math.fsum(ending.since for ending in self.endings) / len(self.endings),
        }

    def table(self, what: str = "levels") -> dict[str, Any]:
        """Columns of `levels` (a row a number of tasks), `samples` or `trajectory` (the first replication's)."""
        if what == "levels":
            exactly = self.averages.pools_with_exactly
            maxima = self.averages.max_distribution
            return {
                "tasks": np.arange(exactly.size),
                "pools_with_exactly": exactly,
                "task_share": self.averages.task_share,
                "max_tasks_share": np.pad(maxima, (0, exactly.size))[: exactly.size],
            }
        if what == "samples":
            rows = [averages(sample, self.scenario.pools).scalars() for sample in self.samples]
            return {name: np.array([row[name] for row in rows]) for name in rows[0]}
        if what == "trajectory" and self.trajectories:
            return dict(self.trajectories[0].table())
        raise InputError(f"There is no table {what!r}; tables are levels, samples and, if recorded, trajectory.")

    def to_pandas(self, what: str = "levels") -> pd.DataFrame:
        """A table as a pandas frame (`pip install evenly[frames]`)."""
        import pandas as pd  # noqa: PLC0415  (optional)

        return pd.DataFrame(self.table(what))

    def to_polars(self, what: str = "levels") -> pl.DataFrame:
        """A table as a polars frame (`pip install evenly[frames]`)."""
        import polars as pl  # noqa: PLC0415  (optional)

        return pl.DataFrame(self.table(what))

    def save(self, path: str | Path) -> None:
        """Write all of it to an .npz file."""
        target = Path(path)
        if target.suffix != ".npz":
            raise InputError(f"A result is saved to a file that ends in .npz, not {target.name}.")
        arrays: dict[str, NDArray[Any]] = {}
        for index, sample in enumerate(self.samples):
            arrays |= _arrays(f"sample.{index}", sample)
        for index, trajectory in enumerate(self.trajectories):
            arrays |= _arrays(f"trajectory.{index}", trajectory)
        arrays["meta"] = np.array(json.dumps(self._meta()))
        with atomic_write(target) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)

    def _meta(self) -> dict[str, Any]:
        scenario = {f.name: getattr(self.scenario, f.name) for f in fields(Scenario)}
        if isinstance(self.scenario.alpha, Decimal):
            scenario["alpha"] = str(self.scenario.alpha)
        if not isinstance(self.scenario.schedule, str | None):
            scenario["schedule"] = [asdict(phase) for phase in self.scenario.phases]
        return {
            "format": FORMAT,
            "scenario": scenario,
            "seed": self.seed,
            "replications": self.replications,
            "batches": self.batches,
            "steady_state": self.steady_state,
            "seconds": self.seconds,
            "events": self.events,
            "endings": [asdict(ending) for ending in self.endings],
            "samples": len(self.samples),
            "trajectories": len(self.trajectories),
        }

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read what `save` wrote."""
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
                data = {name: stored[name] for name in stored.files}
            return cls._from_arrays(data)
        except InputError as error:
            raise InputError(f"{path} is not a result that this version can read: {error}") from None
        except OSError as error:
            raise InputError(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from None
        except (*_DAMAGE, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"{path} is not a saved result, or damaged ({type(error).__name__}).") from None

    @classmethod
    def _from_arrays(cls, data: dict[str, NDArray[Any]]) -> Result:
        meta = json.loads(str(data["meta"]))
        if meta["format"] != FORMAT:
            raise InputError(f"its format is {meta['format']}, not {FORMAT}.")
        scenario = meta["scenario"]
        if isinstance(scenario["schedule"], list):
            scenario["schedule"] = [Phase(**phase) for phase in scenario["schedule"]]
        return cls(
            scenario=Scenario(**scenario),
            seed=meta["seed"],
            replications=meta["replications"],
            batches=meta["batches"],
            steady_state=meta["steady_state"],
            seconds=meta["seconds"],
            events=meta["events"],
            samples=[_read(Tally, data, f"sample.{index}") for index in range(meta["samples"])],
            endings=[Ending(**ending) for ending in meta["endings"]],
            trajectories=[_read(Trajectory, data, f"trajectory.{index}") for index in range(meta["trajectories"])],
        )


def _arrays(prefix: str, item: Tally | Trajectory) -> dict[str, NDArray[Any]]:
    return {f"{prefix}.{f.name}": np.asarray(getattr(item, f.name)) for f in fields(item)}


def _read(kind: type[Any], data: dict[str, NDArray[Any]], prefix: str) -> Any:  # noqa: ANN401
    """A dataclass back from its arrays; single numbers become plain ones."""
    values = {f.name: data[f"{prefix}.{f.name}"] for f in fields(kind)}
    return kind(**{name: value.item() if value.ndim == 0 else value for name, value in values.items()})
