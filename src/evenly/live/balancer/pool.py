"""A server pool in the live balancer: its addresses, its stage and its open sessions."""

from __future__ import annotations

from typing import NamedTuple

from evenly.live.addresses import Address
from evenly.live.balancer import lifecycle
from evenly.live.balancer.lifecycle import Event, Stage, State, next_stage
from evenly.live.balancer.slow_start import Ramp


class Sample(NamedTuple):
    """The own sessions of a pool at a time, and in the sample before: checks fail after sessions are lost."""

    at: float
    sessions: int
    before: int


class LivePool:
    """One pool.

    `picked` counts its open sessions that the balancer placed or saw it serve, `unpicked` the others that came
    through its gateways, and `elsewhere` those of other balancers. Only `rotation.py` writes these counts,
    `weight`, `member` and `ramp`; only `balancer.py` calls `apply` and writes `source` and what the checks found.
    """

    __slots__ = (
        "_stage",
        "added",
        "address",
        "elsewhere",
        "endpoint",
        "failure",
        "member",
        "picked",
        "ramp",
        "sample",
        "source",
        "unpicked",
        "weight",
        "well_at"
    )  # fmt: skip

    def __init__(self, address: Address, endpoint: Address) -> None:
        self.address = address
        self.endpoint = endpoint  # its address with the host as an IP literal
        self.source = ""  # the name that DNS lists it under; empty if it was given by its address
        self.weight = 1.0  # its share of the sessions, relative to others
        self.member = False  # whether the policy may pick it
        self.picked = 0
        self.unpicked = 0
        self.elsewhere = 0
        self.ramp: Ramp | None = None  # a cap on its sessions, only while it warms up
        self.added = 0.0  # when it was added last
        self.well_at: float | None = None  # when it passed a check last, or served its first session
        self.sample = Sample(0.0, 0, 0)
        self.failure = ""  # why it failed last
        self._stage = Stage.STARTING

    @property
    def sessions(self) -> int:
        """All open sessions, which the policy balances."""
        return self.picked + self.unpicked + self.elsewhere

    @property
    def own(self) -> int:
        """The open sessions that came through this balancer's gateways. A leaving pool is gone without them."""
        return self.picked + self.unpicked

    @property
    def stage(self) -> Stage:
        """Its stage in the life cycle."""
        return self._stage

    @property
    def state(self) -> State:
        """The stage in one word, as `/state` shows it."""
        return lifecycle.SHOWN[self._stage]

    @property
    def available(self) -> bool:
        """Whether it should get new sessions."""
        return self._stage in lifecycle.AVAILABLE

    @property
    def draining(self) -> bool:
        """Whether the operator has drained it."""
        return self._stage in lifecycle.DRAINING

    @property
    def failing(self) -> bool:
        """Whether its health checks fail."""
        return self._stage in lifecycle.FAILING

    @property
    def leaving(self) -> bool:
        """Whether it was removed."""
        return self._stage in lifecycle.LEAVING

    def apply(self, event: Event) -> None:
        """Move to the stage that follows the event."""
        self._stage = next_stage(self._stage, event, pool=self.address)

    def __repr__(self) -> str:
        return f"LivePool({self.address}, {self.sessions} sessions, {self.state})"
