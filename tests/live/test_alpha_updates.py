"""Updates of alpha: when the picker asks for a recommendation, what it asks for, and what it does without one.

The recommendation runs as `nice python -m evenly tune`. Here a script called `nice` comes first on the path.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from evenly.core import LearningRule, ThresholdPolicy
from evenly.live import alpha_updates
from evenly.live.addresses import Address
from evenly.live.alpha_updates import Advisor
from evenly.live.balancer.balancer import Balancer
from evenly.live.balancer.events import AlphaChanged
from evenly.live.log import Log
from tests.live.processes import PATIENCE


class Scene:
    """A balancer, its advisor, and the script that recommends."""

    def __init__(self, folder: Path, pools: int, load_max: float | None = None) -> None:
        self._calls = folder / "calls"
        self._answer = folder / "answer"
        script = folder / "nice"
        script.write_text(f'#!/bin/sh\necho "$@" >> {self._calls}\n. {self._answer}\n')
        script.chmod(0o755)
        self.recommend("0.9")
        self.lines = io.StringIO()
        self.reasons: list[str] = []
        self.balancer = Balancer(
            ThresholdPolicy(0, LearningRule("0.5")),
            name="threshold",
            choose=lambda items: items[0],
            clock=lambda: 0.0,
            slow_start=0.0,
            report=lambda event: self.reasons.extend([event.reason] if isinstance(event, AlphaChanged) else []),
        )
        self.pools = [self.balancer.add(_address(number), _address(number)) for number in range(pools)]
        self.advisor = Advisor(self._sessions, self.balancer.set_alpha, load_max, Log(self.lines))

    def _sessions(self) -> list[int]:
        return [pool.sessions for pool in self.balancer.pools if not (pool.draining or pool.leaving)]

    def recommend(self, alpha: str) -> None:
        self.answer(f"""echo '{{"recommended": {alpha}}}'""")

    def answer(self, command: str) -> None:
        self._answer.write_text(command)

    def questions(self) -> list[str]:
        """Return the options of every call so far."""
        calls = self._calls.read_text().splitlines() if self._calls.exists() else []
        assert all("-m evenly tune --json --pools=" in call for call in calls)
        return [call.partition("--json ")[2] for call in calls]

    def failures(self) -> list[dict[str, object]]:
        lines = [json.loads(line) for line in self.lines.getvalue().splitlines()]
        assert all(line["event"] == "no advice on alpha" for line in lines)
        return lines

    async def until(self, condition: Callable[[], object]) -> None:
        """Run the advisor until the condition holds."""
        task = asyncio.create_task(self.advisor.run())
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    await asyncio.sleep(0.005)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _address(number: int) -> Address:
    return Address("127.0.0.1", 9001 + number)


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(alpha_updates, "_POLL_S", 0.01)
    monkeypatch.setattr(alpha_updates, "_RETRY_S", 0.01)


def test_pools_that_drain_or_leave_do_not_count_and_one_pool_needs_no_alpha(tmp_path: Path) -> None:
    scene = Scene(tmp_path, pools=3)
    scene.balancer.set_unpicked(scene.pools[1], 1)
    scene.balancer.drain(_address(0))
    scene.balancer.remove(_address(1))
    turns = iter(range(20))

    async def play() -> None:
        await scene.until(lambda: next(turns, None) is None)
        scene.balancer.undrain(_address(0))
        await scene.until(lambda: scene.balancer.alpha == 0.9)
        scene.recommend("0.95")
        scene.balancer.add(_address(3), _address(3))
        await scene.until(lambda: scene.balancer.alpha == 0.95)
        scene.recommend("0.97")
        for pool in scene.balancer.pools:
            scene.balancer.set_unpicked(pool, 11)
        await scene.until(lambda: scene.balancer.alpha == 0.97)

    asyncio.run(play())
    assert scene.questions() == [
        *("--pools=2 --load-max=10.0", "--pools=3 --load-max=10.0", "--pools=3 --load-max=20.0")
    ]
    assert scene.reasons == [
        *("recommended for 2 pools", "3 pools instead of 2", "up to 20 sessions per pool instead of 10")
    ]


@pytest.mark.parametrize(("sessions", "load_max"), [(10, 10.0), (11, 20.0), (5000, 1000.0)])
def test_a_load_that_was_not_given_is_doubled_until_it_covers_the_mean(
    tmp_path: Path, sessions: int, load_max: float
) -> None:
    scene = Scene(tmp_path, pools=2)
    for pool in scene.pools:
        scene.balancer.set_unpicked(pool, sessions)
    asyncio.run(scene.until(scene.questions))
    assert scene.questions() == [f"--pools=2 --load-max={load_max}"]


@pytest.mark.parametrize(("answer", "code"), [("exit 3", 3), ("echo '{}'", 0)])
def test_without_an_answer_alpha_stays_and_the_advisor_asks_again(tmp_path: Path, answer: str, code: int) -> None:
    scene = Scene(tmp_path, pools=2)
    scene.answer(answer)

    async def play() -> None:
        await scene.until(lambda: len(scene.failures()) >= 2)
        assert scene.balancer.alpha == 0.5
        scene.recommend("0.9")
        await scene.until(lambda: scene.balancer.alpha == 0.9)

    asyncio.run(play())
    first = scene.failures()[0]
    assert (first["pools"], first["load_max"], first["code"]) == (2, 10.0, code)


def test_a_load_that_was_given_stays(tmp_path: Path) -> None:
    scene = Scene(tmp_path, pools=2, load_max=7.0)
    for pool in scene.pools:
        scene.balancer.set_unpicked(pool, 100)
    asyncio.run(scene.until(scene.questions))
    assert scene.questions() == ["--pools=2 --load-max=7.0"]


def test_a_program_that_cannot_be_started_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, pools=2)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    asyncio.run(scene.until(lambda: len(scene.failures()) >= 2))
    assert "No such file" in str(scene.failures()[0]["reason"])
    assert scene.balancer.alpha == 0.5
