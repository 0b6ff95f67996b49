"""The siege at small size: it passes on a gateway that works, and every check fails on one that does not."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path

import pytest

from chaos import attackers, bounds, siege
from chaos.__main__ import main
from chaos.field import Field, Size, field_of
from chaos.gateway import ENVOY
from chaos.innocents import Innocent, begin
from chaos.processes import Usage
from chaos.requests import admin_accepts
from chaos.siege import Outcome, order, run_step
from chaos.steps import Act, Step, all_steps
from tests.live.processes import PATIENCE, eventually

pytestmark = pytest.mark.full


ROOT = Path(__file__).parents[2]
SMALL = ("--pools", "3", "--innocents", "20", "--files", "2000")
SIZE = Size(pools=3, innocents=20, files=2000)


def test_a_gateway_that_works_passes(capsys: pytest.CaptureFixture[str]) -> None:
    steps = ("forged-headers", "pools-killed")
    assert main(["--seed", "1", "--minutes", "0", "--json", *SMALL, "--only", *steps]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["passed"], told["seed"]) == (True, 1)
    assert sorted(step["name"] for step in told["steps"]) == sorted(steps)
    for step in told["steps"]:
        assert step["lost"] == 0
        assert step["problems"] == []
        assert step["matched"] is not None
        assert {"envoy", "picker", "supervisor"} == set(step["peaks"])
    assert sum(step["forgiven"] for step in told["steps"]) > 0


async def lose_an_innocent(field: Field, chance: random.Random) -> None:
    """Kill a pool and do not say so."""
    await field.pools[0].kill()
    await field.pools[0].start()


async def crash_envoy(field: Field, chance: random.Random) -> None:
    """Kill Envoy and do not say so."""
    before = field.gateway.pids()[ENVOY]
    field.gateway.signal(ENVOY, signal.SIGKILL)
    assert await field.gateway.wait_for(ENVOY, PATIENCE, other_than=before)


async def refuse_newcomers(field: Field, chance: random.Random) -> None:
    """Drain all pools. The sessions continue."""
    for pool in field.pools:
        await admin_accepts(field, "POST", f"/pools/{pool.address}/drain")


async def serve_newcomers(field: Field, chance: random.Random) -> None:
    """Break nothing any more."""
    for pool in field.pools:
        await admin_accepts(field, "POST", f"/pools/{pool.address}/undrain")


def test_every_loss_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these steps breaks something without saying so."""

    async def run() -> None:
        async with field_of(SIZE) as ground:
            hidden: list[Innocent] = []

            async def hide_a_session(field: Field, chance: random.Random) -> None:
                """Open a session that bypasses the gateway, so that the picker's count is wrong."""
                innocent, reason = await begin(field.pools[0].address, lambda *_: None)
                assert not reason
                hidden.append(innocent)

            async def broken(act: Act, seconds: float = PATIENCE) -> Outcome:
                monkeypatch.setattr(siege, "SETTLE_S", seconds)
                return await run_step(Step("broken", "", act), ground, random.Random(1))

            lost = await broken(lose_an_innocent)
            assert lost.lost > 0
            assert any("innocents lost" in problem for problem in lost.problems)
            crashed = await broken(crash_envoy)
            assert "Envoy crashed" in crashed.problems
            assert crashed.lost == SIZE.innocents
            miscounted = await broken(hide_a_session, seconds=1)
            assert any("wrong counts" in problem for problem in miscounted.problems)
            assert (miscounted.matched, miscounted.lost) == (None, 0)
            hidden[0].vanish()
            refusing = await broken(refuse_newcomers)
            assert any("20 of 20 new clients were refused" in problem for problem in refusing.problems)
            assert refusing.lost == 0
            assert (await broken(serve_newcomers)).problems == ()
            async with AsyncExitStack() as held:

                async def keep_files_open(field: Field, chance: random.Random) -> None:
                    await held.enter_async_context(attackers.waiting_posts(field.gateway.listen, 200, 1))

                leaking = await broken(keep_files_open, seconds=1)
                assert any("files open" in problem for problem in leaking.problems)
            monkeypatch.setattr(bounds, "peaks", lambda _: {ENVOY: Usage(memory=2**20, files=10**6)})
            swollen = await broken(serve_newcomers)
            assert [problem.split(" used")[0] for problem in swollen.problems] == [ENVOY]

    asyncio.run(run())


def test_bounds_are_exceeded_by_more_than_they_allow() -> None:
    allowed = bounds.peaks(4000)
    assert bounds.beyond(allowed, allowed) == []
    for part, most in allowed.items():
        more_memory = {**allowed, part: Usage(most.memory + 1, most.files)}
        more_files = {**allowed, part: Usage(most.memory, most.files + 1)}
        assert [problem.split()[0] for problem in bounds.beyond(more_memory, allowed)] == [part]
        assert [problem.split()[0] for problem in bounds.beyond(more_files, allowed)] == [part]
    assert allowed[ENVOY].files < 4000


def test_the_order_and_the_parameters_follow_from_the_seed() -> None:
    steps = list(all_steps().values())

    def drawn(seed: int, some: list[Step]) -> list[tuple[str, float]]:
        return [(step.name, chance.random()) for step, chance in islice(order(some, seed), len(some))]

    assert drawn(1, steps) == drawn(1, steps[::-1])
    assert drawn(1, steps) != drawn(2, steps)
    assert sorted(name for name, _ in drawn(1, steps)) == sorted(all_steps())
    assert set(drawn(1, steps[:1])) <= set(drawn(1, steps))  # --only repeats the parameters
    rounds = [step.name for step, _ in islice(order(steps, 1), 2 * len(steps))]
    assert sorted(rounds[: len(steps)]) == sorted(rounds[len(steps) :])
    assert rounds[: len(steps)] != rounds[len(steps) :]


def test_every_step_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(all_steps())
    assert all(len(line.split()) > 3 for line in lines)


def test_a_siege_that_cannot_work_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--innocents", "500", "--files", "1000"]) == 2
    assert "--files must be at least" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["--only", "nonsense"])
    assert ended.value.code == 2


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chaos", "--seed", "1", *SMALL, "--only", "forged-headers"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("seed 1")
        assert "forged-headers" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        told = process.stdout.read()
        assert process.wait(PATIENCE) == 130
    assert "steps, seed 1" in told
    eventually(lambda: list(tmp_path.iterdir()), lambda left: not left)
    assert [words for words in map(_command, Path("/proc").iterdir()) if str(tmp_path) in words] == []


def _command(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_bytes().decode(errors="replace") if folder.name.isdigit() else ""
    except OSError:  # it has just ended
        return ""
