"""The processes of a fleet for benchmarks: stores and dispatchers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from bench.processes import ALPHA, Process, Processes, cpu_seconds, fetch, free_addresses, listens, tries
from evenly.live.addresses import Address
from evenly.live.demo.fleet.counts import Counts, counts_of
from evenly.live.demo.fleet.processes import find_store, store_command
from evenly.live.dispatcher.views import FleetView
from evenly.live.store.base import PoolState


def start_store(processes: Processes, folder: Path) -> tuple[Process, Address]:
    """Start a Valkey or Redis server that keeps nothing on disk."""
    [address] = free_addresses(1)
    process = Process(store_command(find_store(), address, folder), lambda: listens(address))
    return processes.add(process), address


@dataclass(frozen=True)
class Dispatcher:
    """A dispatcher: its process, and the addresses of its ports."""

    process: Process
    api: Address
    admin: Address

    def cpu(self) -> float:
        """Return the processor time that it has used, in seconds."""
        return cpu_seconds(self.process.number)

    def view(self) -> FleetView:
        """Return its state."""
        return FleetView.model_validate_json(fetch(f"http://{self.admin}/state") or "")

    def counts(self) -> Counts:
        """Return its messages and picks so far."""
        return counts_of(self.view())

    def wait_for(self, pools: int) -> None:
        """Wait until this many pools serve."""
        for _ in tries(f"not all of {pools} pools are members"):
            if sum(pool.state is PoolState.SERVING for pool in self.view().pools) == pools:
                return


def start_dispatcher(processes: Processes, store: Address | None, *options: str, alpha: str = ALPHA) -> Dispatcher:
    """Start a dispatcher; without a store, it keeps its tokens in process."""
    api, admin = free_addresses(2)
    command = [sys.executable, "-m", "evenly", "dispatcher", "--listen", str(api), "--admin", str(admin)]
    shared = [] if store is None else ["--store", f"redis://{store}"]
    process = Process([*command, "--alpha", alpha, *shared, *options], lambda: listens(api) and listens(admin))
    return Dispatcher(processes.add(process), api, admin)
