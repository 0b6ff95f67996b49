"""Run steps in an order that the seed gives, and check after each what every step must leave intact."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from chaos import bounds
from chaos.field import LASTS_S, SETTLE_S, Field, Size, eventually, field_of, in_background
from chaos.gateway import ENVOY
from chaos.innocents import try_once
from chaos.processes import Usage, usage
from chaos.steps import Step

_STEP_S = 180.0  # a step that takes longer hangs
_NEWCOMERS = 20
_MAX_LINES_PER_S = 100  # of the log, as the reference promises
_THRESHOLD_LINES_PER_S = 1  # "threshold changed": a line stands for many changes
_THRESHOLD_LINES = 10  # a picker that has just started learns


@dataclass(frozen=True)
class Outcome:
    """What a step did. It passed if there are no problems."""

    name: str
    seconds: float
    lost: int
    forgiven: int
    refused: int
    matched: float | None  # seconds until the counts were right, None if they never were
    peaks: dict[str, Usage]
    problems: Sequence[str] = ()
    facts: dict[str, object] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether all expectations were met."""
        return not self.problems


def order(steps: Sequence[Step], seed: int) -> Iterator[tuple[Step, random.Random]]:
    """Yield rounds of all steps without end, each in its own order, and the randomness of each step.

    A step's parameters depend on the seed, the round and its name only, so that `--only` repeats them.
    """
    number = 0
    while True:
        shuffled = sorted(steps, key=lambda step: step.name)
        random.Random(f"{seed} {number}").shuffle(shuffled)
        for step in shuffled:
            yield step, random.Random(f"{seed} {number} {step.name}")
        number += 1


async def siege(steps: Sequence[Step], *, seed: int, minutes: float, size: Size) -> AsyncGenerator[Outcome, None]:
    """Run steps until the time is over, at least one round, and yield their outcomes.

    After a failed step everything is started anew, so that each verdict stands alone.
    """
    end = time.monotonic() + 60 * minutes
    plan = order(steps, seed)
    done = 0
    async with AsyncExitStack() as stack:
        ground = None
        while done < len(steps) or time.monotonic() < end:
            if ground is None:
                ground = await stack.enter_async_context(field_of(size))
            step, chance = next(plan)
            outcome = await run_step(step, ground, chance)
            yield outcome
            done += 1
            if not outcome.passed:
                await stack.aclose()
                ground = None


async def run_step(step: Step, ground: Field, chance: random.Random) -> Outcome:
    """Run one step and check everything after it."""
    ground.begin()
    record = ground.record
    began = time.monotonic()
    async with in_background(ground.run_sampler()):
        try:
            async with asyncio.timeout(_STEP_S):
                await step.act(ground, chance)
        except (OSError, EOFError, RuntimeError) as error:
            record.problems.append(f"the step could not be carried out: {error!r}")
        acted = time.monotonic()
        matched = await _check_counts(ground)
        await _check_newcomers(ground)
        await _check_files_after(ground)
    lost = ground.losses()
    if lost:
        reasons = Counter(loss.reason for loss in lost)
        why = ", ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
        record.problems.append(f"{len(lost)} innocents lost: {why}")
    _check_envoy(ground)
    _check_log(ground, time.monotonic() - began)
    record.problems += bounds.beyond(record.peaks, bounds.peaks(ground.size.files))
    all_lost = len(ground.people.lost) - record.lost_before
    return Outcome(
        name=step.name,
        seconds=time.monotonic() - began,
        lost=len(lost),
        forgiven=all_lost - len(lost),
        refused=len(ground.people.refused) - record.refused_before + len(record.refusals),
        matched=None if matched is None else matched - acted,
        peaks=record.peaks,
        problems=tuple(record.problems),
        facts=record.facts,
    )


async def _check_counts(ground: Field) -> float | None:
    """Wait until all innocents are back and each count is the pool's own. Return when that was."""
    back = await ground.people.wait(SETTLE_S)
    ground.expect(back, f"only {len(ground.people.open)} of {ground.size.innocents} innocents were served again")
    wrong, right = await eventually(ground.lasting_mismatch, lambda wrong: not wrong, SETTLE_S)
    if not right:
        shown = ", ".join(f"{pool}: {counted} counted, {real} open" for pool, (counted, real) in wrong.items())
        ground.expect(False, f"wrong counts after {SETTLE_S:g} s: {shown[:300]}")
        return None
    return time.monotonic() - LASTS_S


async def _check_newcomers(ground: Field) -> None:
    """New clients are served."""
    reasons = [reason for _ in range(_NEWCOMERS) if (reason := await try_once(ground.gateway.listen))]
    ground.expect(
        not reasons, f"{len(reasons)} of {_NEWCOMERS} new clients were refused: {', '.join(set(reasons))}"
    )


async def _check_files_after(ground: Field) -> None:
    """Envoy closes the files of the attackers."""

    async def look() -> int:
        pid = ground.gateway.pids().get(ENVOY)
        return 0 if pid is None else usage(pid).files

    most = bounds.files_after(ground.size.innocents)
    files, closed = await eventually(look, lambda files: files <= most, SETTLE_S)
    ground.expect(closed, f"Envoy still has {files} files open, more than {most}")


def _check_envoy(ground: Field) -> None:
    """Envoy is the same process, unless the step killed it."""
    now = ground.gateway.pids().get(ENVOY)
    if not ground.record.envoy_killed:
        ground.expect(now in ground.record.envoys, "Envoy crashed")


def _check_log(ground: Field, seconds: float) -> None:
    """The log reports no fault of ours, and does not flood."""
    events = Counter(str(event.get("event")) for event in ground.gateway.events(ground.record.log_before))
    ground.expect(events["fault"] == 0, "the log reports a fault")
    lines, most = events.total(), _MAX_LINES_PER_S * (seconds + 1)
    ground.expect(lines <= most, f"{lines} lines of log in {seconds:.0f} s")
    changed, most = events["threshold changed"], _THRESHOLD_LINES + _THRESHOLD_LINES_PER_S * seconds
    ground.expect(changed <= most, f'{changed} lines "threshold changed" in {seconds:.0f} s')
