"""The life cycle of a pool: its table, next to four independent flags, and through a real balancer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from evenly.core import JoinShortestQueue
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer import lifecycle
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.events import BalancerEvent
from evenly.live.balancer.lifecycle import TRANSITIONS, Event, LifecycleError, Stage, State, next_stage
from evenly.live.balancer.pool import LivePool

SLOW_START = 10.0
POOL = Address("127.0.0.1", 9001)
PAIRS = [(stage, event) for stage in Stage for event in Event]
LISTED = [(stage, event) for stage, row in TRANSITIONS.items() for event in row]


# --- the table, next to the flags ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flags:
    """The flags that the table replaced, and whether the pool exists."""

    draining: bool = False
    failing: bool = False
    leaving: bool = False
    checking: bool = False
    ramp: bool = False
    there: bool | None = True  # None before it was added

    @property
    def available(self) -> bool:
        return bool(self.there) and not (self.draining or self.failing or self.leaving)

    def after(self, event: Event) -> Flags | None:
        """Return the flags after the event; None if it cannot happen."""
        allowed: dict[Event, tuple[bool, Flags]] = {
            Event.ADD: (self.there is None or self.leaving, replace(self, draining=False, leaving=False)),
            Event.REACH: (self.checking, replace(self, checking=False, ramp=True)),
            Event.WARMED_UP: (self.ramp, replace(self, ramp=False)),
            Event.FAIL: (not self.failing, replace(self, failing=True)),
            Event.RECOVER: (self.failing, replace(self, failing=False)),
            Event.DRAIN: (not self.draining and not self.leaving, replace(self, draining=True)),
            Event.UNDRAIN: (self.draining and not self.leaving, replace(self, draining=False)),
            Event.REMOVE: (not self.leaving, replace(self, leaving=True)),
            Event.EMPTIED: (self.leaving, replace(self, there=False)),
        }
        can, flags = allowed[event]
        if self.there is False or (self.there is None and event is not Event.ADD) or not can:
            return None
        if self.there is None:
            flags = replace(flags, there=True)
        if not flags.available:
            return replace(flags, checking=False, ramp=False)
        if self.available:
            return flags
        return replace(flags, ramp=True) if event is Event.RECOVER else replace(flags, checking=True)


FLAGS = {
    Stage.STARTING: Flags(there=None),
    Stage.CHECKING: Flags(checking=True),
    Stage.WARMING: Flags(ramp=True),
    Stage.SERVING: Flags(),
    Stage.FAILING: Flags(failing=True),
    Stage.DRAINING: Flags(draining=True),
    Stage.DRAINING_FAILING: Flags(draining=True, failing=True),
    Stage.LEAVING: Flags(leaving=True),
    Stage.LEAVING_FAILING: Flags(leaving=True, failing=True),
    Stage.LEAVING_DRAINING: Flags(leaving=True, draining=True),
    Stage.LEAVING_DRAINING_FAILING: Flags(leaving=True, draining=True, failing=True),
}


def of(stage: Stage) -> Flags | None:
    """Return the flags of a stage; None for a pool that is gone, whose flags do not matter."""
    return FLAGS.get(stage)


def test_the_table_agrees_with_the_flags() -> None:
    for stage, event in PAIRS:
        before = of(stage)
        after = None if before is None else before.after(event)
        if after is None:
            with pytest.raises(LifecycleError) as raised:
                next_stage(stage, event, pool=POOL)
            assert not isinstance(raised.value, InputError)
            assert all(word in str(raised.value) for word in (str(POOL), stage.name, event.name))
        elif after.there:
            assert of(next_stage(stage, event, pool=POOL)) == after
        else:
            assert next_stage(stage, event, pool=POOL) is Stage.GONE


def test_the_meaning_of_a_stage_agrees_with_the_flags() -> None:
    for stage, flags in FLAGS.items():
        pool = reached(stage)
        assert (pool.draining, pool.failing, pool.leaving) == (flags.draining, flags.failing, flags.leaving)
        assert pool.available == flags.available
        word = (
            "leaving" if flags.leaving else "draining" if flags.draining else "failing" if flags.failing else None
        )
        if flags.there:
            assert str(pool.state) == (
                word or ("checking" if flags.checking else "warming" if flags.ramp else "serving")
            )


def reached(stage: Stage) -> LivePool:
    """Return a pool in this stage."""
    pool = LivePool(POOL, POOL)
    for event in path_to(stage):
        pool.apply(event)
    assert pool.stage is stage
    return pool


def path_to(wanted: Stage) -> list[Event]:
    """Return the shortest history that leads to a stage."""
    paths: dict[Stage, list[Event]] = {Stage.STARTING: []}
    for stage in (queue := [Stage.STARTING]):
        for event, following in TRANSITIONS[stage].items():
            if following not in paths:
                paths[following] = [*paths[stage], event]
                queue.append(following)
    return paths[wanted]


def test_every_stage_has_a_row_and_a_word_and_can_be_reached() -> None:
    assert list(TRANSITIONS) == list(lifecycle.SHOWN) == list(Stage)
    assert {stage for stage in Stage if path_to(stage) is not None} == set(Stage)
    assert not TRANSITIONS[Stage.GONE]
    assert {str(word) for word in State} == {"serving", "warming", "checking", "failing", "draining", "leaving"}


# --- through a balancer ----------------------------------------------------------------------------------------


class Scene:
    """A balancer with one pool, sessions that keep it from going too early, and a clock set by hand."""

    def __init__(self, slow_start: float = SLOW_START) -> None:
        self.now = 0.0
        self.events: list[BalancerEvent] = []
        self.balancer = Balancer(
            JoinShortestQueue(),
            name="jsq",
            choose=random.Random(1).choice,
            clock=lambda: self.now,
            slow_start=slow_start,
            report=self.events.append,
        )

    @property
    def pool(self) -> LivePool | None:
        return self.balancer.pool_at(POOL)

    def apply(self, event: Event) -> None:
        """Make the event happen from outside, as operator, health checks, time and sessions do."""
        happen: dict[Event, Callable[[], object]] = {
            Event.ADD: lambda: self.balancer.add(POOL, POOL),
            Event.WARMED_UP: lambda: self.wait(SLOW_START),
            Event.REACH: self.set_well,
            Event.FAIL: self.set_failing,
            Event.RECOVER: self.set_well,
            Event.DRAIN: lambda: self.balancer.drain(POOL),
            Event.UNDRAIN: lambda: self.balancer.undrain(POOL),
            Event.REMOVE: lambda: self.balancer.remove(POOL),
            Event.EMPTIED: lambda: self.set_sessions(0),
        }
        happen[event]()

    def set_failing(self) -> None:
        assert self.pool is not None
        self.balancer.set_failing(self.pool, "down")

    def set_well(self) -> None:
        assert self.pool is not None
        self.balancer.set_well(self.pool)

    def set_sessions(self, count: int) -> None:
        assert self.pool is not None
        self.balancer.set_unpicked(self.pool, count)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.balancer.tick()


def test_every_listed_transition_happens_in_a_balancer() -> None:
    for stage, event in LISTED:
        scene = Scene()
        history = [*path_to(stage), event]
        pool: LivePool | None = None
        for each in history:
            scene.apply(each)
            if pool is None:
                pool = scene.pool
                scene.set_sessions(1)
        assert pool is not None
        assert pool.stage is TRANSITIONS[stage][event]
        assert scene.pool is (None if pool.stage is Stage.GONE else pool)
