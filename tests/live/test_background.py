"""The picker's background work: repeated calls, faults that end nothing, and saving the state."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

from evenly.live.background import repeat, running
from evenly.live.log import Log
from evenly.live.picker.background import StateSaver
from evenly.live.picker.state_file import PickerState
from evenly.live.settings import read_settings
from tests.live.processes import PATIENCE


def events(lines: io.StringIO) -> list[tuple[str, object, object]]:
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    return [(line["event"], line.get("where"), line.get("error")) for line in found]


def test_repeated_work_survives_a_fault() -> None:
    lines, calls = io.StringIO(), list[int]()

    async def play() -> None:
        enough = asyncio.Event()

        def work() -> None:
            calls.append(len(calls))
            if len(calls) == 3:
                enough.set()
            raise ZeroDivisionError("once more")

        async with running([repeat(work, 0.001, Log(lines))], Log(lines)), asyncio.timeout(PATIENCE):
            await enough.wait()

    asyncio.run(play())
    assert len(calls) == 3  # and no more after the block
    fault = ("fault", test_repeated_work_survives_a_fault.__qualname__ + ".<locals>.play.<locals>.work")
    assert events(lines) == [(*fault, "ZeroDivisionError('once more')")] * 3


def test_work_that_fails_ends_no_other_work() -> None:
    lines = io.StringIO()

    async def play() -> list[str]:
        finished: list[str] = []
        done = asyncio.Event()

        async def fail() -> None:
            raise OSError("no space left")

        async def last() -> None:
            try:
                await asyncio.sleep(0)
                done.set()
                await asyncio.sleep(PATIENCE)
            finally:
                finished.append("cancelled")

        async with running([fail(), last()], Log(lines)), asyncio.timeout(PATIENCE):
            await done.wait()
        return finished

    assert asyncio.run(play()) == ["cancelled"]
    [(event, where, error)] = events(lines)
    assert (event, error) == ("fault", "OSError('no space left')")
    assert str(where).endswith("fail")


def test_the_state_is_written_only_when_it_has_changed(tmp_path: Path) -> None:
    file, states = tmp_path / "state.json", iter(["0.8", "0.8", "0.9"])
    settings = read_settings({"listen": "127.0.0.1:4000", "pool": ["127.0.0.1:9001"]}, None)
    saver = StateSaver(
        lambda: [file], lambda: PickerState(settings=settings, pools=[], alpha=next(states)), object, Log(None)
    )
    for written in ("0.8", None, "0.9"):
        saver.save()
        assert (json.loads(file.read_text())["alpha"] if file.exists() else None) == written
        file.unlink(missing_ok=True)
