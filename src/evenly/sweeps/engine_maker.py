"""Which engine runs a sweep: chosen and checked before the work, and started when it is needed."""

from __future__ import annotations

from evenly.errors import InputError
from evenly.inputs import shown, whole_number
from evenly.sim.run import MAX_WORKERS, usable_cores
from evenly.sweeps.engines import NAMES, Engine
from evenly.sweeps.engines.local import LocalEngine
from evenly.sweeps.point import Plan


class EngineMaker:
    """An engine that is made when it is needed: Ray takes seconds to start."""

    def __init__(self, name: str, workers: int | None, address: str | None) -> None:
        self._name, self._workers, self._address = name, workers, address

    @property
    def expected_workers(self) -> int:
        """Processes on this machine, for an estimate; a cluster may have more."""
        return self._workers or usable_cores()

    @property
    def gpu(self) -> bool:
        """Whether it is a GPU."""
        return self._name == "gpu"

    def check(self) -> None:
        """Raise InputError if this machine has no GPU and one is asked for."""
        if self.gpu:
            from evenly.sim.gpu.device import check_device

            check_device()

    def __call__(self, plan: Plan) -> Engine:
        """Start the engine."""
        if self.gpu:
            from evenly.sweeps.engines.gpu import GpuEngine

            return GpuEngine(plan)
        if self._name == "ray":
            from evenly.sweeps.engines.ray_cluster import RayEngine  # an extra

            return RayEngine(plan, self._address)
        return LocalEngine(plan, self.expected_workers)


def engine_maker(name: object, workers: int | None, address: object) -> EngineMaker:
    """Return what makes the engine, or raise InputError."""
    if name not in NAMES:
        raise InputError(f"engine must be one of {', '.join(NAMES)}, not {shown(name)}.")
    if name != "local" and workers is not None:
        raise InputError(f"workers is for engine local, not {name}.")
    if name != "ray" and address is not None:
        raise InputError(f"ray_address is for engine ray, not {name}.")
    if address is not None and (not isinstance(address, str) or not address.strip()):
        raise InputError(f"ray_address must be an address such as 'auto' or 'HOST:PORT', not {shown(address)}.")
    count = None if workers is None else whole_number("workers", workers, 1, MAX_WORKERS)
    return EngineMaker(str(name), count, address)
