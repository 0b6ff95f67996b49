"""The life cycle of a pool: its table, next to the four flags that it replaced, and through a real balancer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenly.core import JoinShortestQueue
from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.balancer import lifecycle
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.events import BalancerEvent
from evenly.live.balancer.lifecycle import TRANSITIONS, Event, LifecycleError, Stage, State, next_stage
from evenly.live.balancer.pool import LivePool
from evenly.live.balancer.session import Session
from evenly.live.picker.event_log import describe

SLOW_START = 10.0
POOL = Address("127.0.0.1", 9001)
PAIRS = [(stage, event) for stage in Stage for event in Event]
LISTED = [(stage, event) for stage, row in TRANSITIONS.items() for event in row]


# --- the table, next to the flags ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flags:
    """The four flags that the table replaced, and whether the pool exists."""

    draining: bool = False
    failing: bool = False
    leaving: bool = False
    ramp: bool = False
    there: bool | None = True  # None before it was added

    @property
    def available(self) -> bool:
        return bool(self.there) and not (self.draining or self.failing or self.leaving)

    def after(self, event: Event) -> Flags | None:
        """Return the flags after the event; None if it cannot happen."""
        allowed: dict[Event, tuple[bool, Flags]] = {
            Event.ADD: (self.there is None or self.leaving, replace(self, draining=False, leaving=False)),
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
            return replace(flags, ramp=False)
        return flags if self.available else replace(flags, ramp=True)


FLAGS = {
    Stage.STARTING: Flags(there=None),
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


@pytest.mark.parametrize(("stage", "event"), PAIRS, ids=lambda each: each.name)
def test_the_table_agrees_with_the_flags(stage: Stage, event: Event) -> None:
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


@pytest.mark.parametrize("stage", FLAGS, ids=lambda stage: stage.name)
def test_the_meaning_of_a_stage_agrees_with_the_flags(stage: Stage) -> None:
    flags = FLAGS[stage]
    pool = reached(stage)
    assert (pool.draining, pool.failing, pool.leaving) == (flags.draining, flags.failing, flags.leaving)
    assert pool.available == flags.available
    word = "leaving" if flags.leaving else "draining" if flags.draining else "failing" if flags.failing else None
    if flags.there:
        assert str(pool.state) == (word or ("warming" if flags.ramp else "serving"))


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
    assert {str(word) for word in State} == {"serving", "warming", "failing", "draining", "leaving"}


def test_a_pool_does_not_change_when_an_event_is_rejected() -> None:
    pool = reached(Stage.DRAINING)
    with pytest.raises(LifecycleError):
        pool.apply(Event.DRAIN)
    assert pool.stage is Stage.DRAINING


# --- through a balancer ----------------------------------------------------------------------------------------


class Scene:
    """A balancer with one pool, sessions that keep it from going too early, and a clock set by hand."""

    def __init__(self, slow_start: float = SLOW_START) -> None:
        self.now = 0.0
        self.events: list[BalancerEvent] = []
        self.opened: list[Session] = []
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
        {
            Event.ADD: lambda: self.balancer.add(POOL, POOL),
            Event.WARMED_UP: lambda: self.wait(SLOW_START),
            Event.FAIL: lambda: self.set_failing(True),
            Event.RECOVER: lambda: self.set_failing(False),
            Event.DRAIN: lambda: self.balancer.drain(POOL),
            Event.UNDRAIN: lambda: self.balancer.undrain(POOL),
            Event.REMOVE: lambda: self.balancer.remove(POOL),
            Event.EMPTIED: self.close_all,
        }[event]()

    def set_failing(self, failing: bool) -> None:
        assert self.pool is not None
        self.balancer.set_failing(self.pool, failing)

    def open_session(self) -> None:
        session = self.balancer.adopt(POOL)
        assert session is not None
        self.opened.append(session)

    def close_all(self) -> None:
        while self.opened:
            self.opened.pop().close()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.balancer.tick()


@pytest.mark.parametrize(("stage", "event"), LISTED, ids=lambda each: each.name)
def test_every_listed_transition_happens_in_a_balancer(stage: Stage, event: Event) -> None:
    scene = Scene()
    history = [*path_to(stage), event]
    pool: LivePool | None = None
    for each in history:
        scene.apply(each)
        if pool is None:
            pool = scene.pool
            scene.open_session()
    assert pool is not None
    assert pool.stage is TRANSITIONS[stage][event]
    assert scene.pool is (None if pool.stage is Stage.GONE else pool)


@dataclass
class Old:
    """The balancer's handling of one pool as it was with flags, and the log lines that it wrote."""

    slow_start: float
    now: float = 0.0
    there: bool = False
    draining: bool = False
    failing: bool = False
    leaving: bool = False
    member: bool = False
    ramp: float | None = None  # when it began
    sessions: int = 0
    log: list[tuple[str, object]] = field(default_factory=list)

    @property
    def available(self) -> bool:
        return not (self.draining or self.failing or self.leaving)

    @property
    def state(self) -> str:
        if self.leaving:
            return "leaving"
        if self.draining:
            return "draining"
        if self.failing:
            return "failing"
        return "serving" if self.ramp is None else "warming"

    def add(self) -> None:
        if not self.there:
            self.draining = self.failing = self.member = False
            self.ramp = None
        self.there, self.leaving, self.draining = True, False, False
        self.log.append(("pool added", None))
        self.settle()

    def set(self, flag: str, value: bool) -> None:
        if getattr(self, flag) == value:
            return
        before = self.state
        setattr(self, flag, value)
        self.settle()
        if self.state != before:
            self.log.append((f"pool {self.state}", before))

    def remove(self) -> None:
        self.set("leaving", True)
        self.forget_if_done()

    def tick(self) -> None:
        self.forget_if_done()
        if self.there and self.ramp is not None:
            self.settle()

    def end(self) -> None:
        self.sessions -= 1
        self.forget_if_done()

    def settle(self) -> None:
        if not self.available:
            self.ramp = None
        elif self.ramp is None:
            if not self.member and self.slow_start > 0:
                self.ramp = self.now
        elif self.now - self.ramp >= self.slow_start:
            self.ramp = None
            self.log.append(("pool serving", "warming"))
        self.member = self.available  # with a single pool, a cap does not affect its state

    def forget_if_done(self) -> None:
        if self.there and self.leaving and not self.sessions:
            self.there = False
            self.log.append(("pool gone", None))


class Both:
    """The same history in the balancer and in the old model."""

    def __init__(self, slow_start: float) -> None:
        self.new = Scene(slow_start)
        self.old = Old(slow_start)

    def do(self, step: str) -> None:
        """Take a step, if it can be taken now."""
        here = self.old.there and not self.old.leaving
        steps: dict[str, tuple[bool, Callable[[], object], Callable[[], object]]] = {
            "add": (not here, lambda: self.new.balancer.add(POOL, POOL), self.old.add),
            "drain": (here, lambda: self.new.balancer.drain(POOL), lambda: self.old.set("draining", True)),
            "undrain": (here, lambda: self.new.balancer.undrain(POOL), lambda: self.old.set("draining", False)),
            "remove": (here, lambda: self.new.balancer.remove(POOL), self.old.remove),
            "fail": (self.old.there, lambda: self.new.set_failing(True), lambda: self.old.set("failing", True)),
            "recover": (
                self.old.there,
                lambda: self.new.set_failing(False),
                lambda: self.old.set("failing", False),
            ),
            "tick": (True, lambda: self.wait(1.0), self.old.tick),
            "tick later": (True, lambda: self.wait(SLOW_START), self.old.tick),
            "open": (self.old.there, self.new.open_session, self.count),
            "close": (bool(self.new.opened), lambda: self.new.opened.pop().close(), self.old.end),
        }
        can, new, old = steps[step]
        if can:
            new()
            old()

    def wait(self, seconds: float) -> None:
        self.old.now += seconds
        self.new.wait(seconds)

    def count(self) -> None:
        self.old.sessions += 1
        if self.old.ramp is not None:
            self.old.settle()

    def agree(self) -> None:
        pool, old = self.new.pool, self.old
        assert (pool is not None) == old.there
        if pool is not None:
            assert (pool.draining, pool.failing, pool.leaving) == (old.draining, old.failing, old.leaving)
            assert (pool.available, str(pool.state), pool.sessions) == (old.available, old.state, old.sessions)
        assert [(name, facts.get("before")) for name, facts in map(describe, self.new.events)] == old.log


STEPS = ["add", "drain", "undrain", "remove", "fail", "recover", "tick", "tick later", "open", "close"]


@pytest.mark.slow
@settings(max_examples=500)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=40), slow_start=st.sampled_from([0.0, SLOW_START]))
def test_any_history_agrees_with_the_flags(steps: list[str], slow_start: float) -> None:
    both = Both(slow_start)
    for step in steps:
        both.do(step)
        both.agree()
