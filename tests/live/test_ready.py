"""The ready line: as data, as a sentence, and as the programs print it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenly.errors import InputError
from evenly.live.addresses import Address
from evenly.live.gateway.picker_process import PickerProcess
from evenly.live.picker.ready import Ready
from tests.live.processes import PATIENCE, Process, eventually, free_port

READY = Ready(listen=Address("127.0.0.1", 4000), admin=Address("::1", 4001), pools=2, policy="jsq")
VALUES = {"listen": "127.0.0.1:4000", "admin": "[::1]:4001", "pools": 2, "policy": "jsq"}


def test_it_is_read_back_as_it_was_written() -> None:
    assert json.loads(READY.to_json()) == VALUES
    assert "\n" not in READY.to_json()
    assert Ready.from_json(READY.to_json()) == READY
    assert Ready.from_json(json.dumps({**VALUES, "a key of a later version": 1})) == READY
    assert Ready.from_json(json.dumps({**VALUES, "pools": 0})).pools == 0  # pools may be added later


def test_the_sentences() -> None:
    assert READY.sentence() == (
        "evenly picker: listening on 127.0.0.1:4000, admin at http://[::1]:4001, 2 pools, policy jsq"
    )
    assert READY.sentence(program="evenly gateway", scheme="http://") == (
        "evenly gateway: listening on http://127.0.0.1:4000, admin at http://[::1]:4001, 2 pools, policy jsq"
    )
    one = Ready(listen=READY.listen, admin=READY.admin, pools=1, policy="jsq")
    assert one.sentence().endswith(", 1 pool, policy jsq")


def test_what_is_no_json_object_is_rejected() -> None:
    for text in ["", "evenly picker: listening on", "[]", "null", "3", "{", "[" * 100_000, "\0"]:
        with pytest.raises(InputError, match="ready line must be a JSON object, not") as caught:
            Ready.from_json(text)
        assert len(str(caught.value)) < 200


def test_a_wrong_or_missing_value_is_named() -> None:
    rows: list[tuple[str, object]] = [
        ("listen", None),
        ("listen", 4000),
        ("listen", "nowhere"),
        ("admin", "http://127.0.0.1:4001"),
        ("pools", "2"),
        ("pools", True),
        ("pools", 2.0),
        ("pools", -1),
        ("policy", None),
        ("policy", ""),
    ]
    for key, value in rows:
        with pytest.raises(InputError, match=f"The key '{key}' of a ready line must be .*, not "):
            Ready.from_json(json.dumps({**VALUES, key: value}))
        with pytest.raises(InputError, match=f"The key '{key}' of a ready line must be .*, not None"):
            Ready.from_json(json.dumps({name: each for name, each in VALUES.items() if name != key}))


@pytest.mark.parametrize(
    ("command", "scheme", "as_json"),
    [("picker", "", True), pytest.param("gateway", "http://", False, marks=pytest.mark.full)],
    ids=["json", "sentence"],
)
def test_the_programs_print_it(command: str, scheme: str, as_json: bool) -> None:
    port, admin = free_port(), free_port()
    options = ("--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}", "--policy", "jsq")
    pools = ("--pool", "127.0.0.1:9", "--pool", "127.0.0.1:10")
    words = [sys.executable, "-m", "evenly", command, *options, *pools, *["--ready-json"] * as_json]
    with Process(*words) as started:
        # The log lines of a gateway's children may come first.
        lines = eventually(
            lambda: [line for line in started.output().splitlines(keepends=True) if '"event"' not in line],
            lambda seen: len(seen) == 1 and seen[0].endswith("\n"),
        )
        started.kill(signal.SIGTERM)
    if as_json:
        expected = {"listen": f"127.0.0.1:{port}", "admin": f"127.0.0.1:{admin}", "pools": 2, "policy": "jsq"}
        assert json.loads(lines[0]) == expected
    else:
        assert lines[0] == (
            f"evenly {command}: listening on {scheme}127.0.0.1:{port}, admin at http://127.0.0.1:{admin}, "
            "2 pools, policy jsq\n"
        )


@pytest.fixture
def impostor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run another program in place of the picker, which prints something else and records its end."""
    program, ended = tmp_path / "python", tmp_path / "ended"
    program.write_text(
        f"#!/bin/sh\ntrap 'touch {ended}; exit' TERM\necho I am ready\nwhile :; do sleep 0.05; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    yield ended


def test_a_process_that_prints_something_else_is_ended(impostor: Path) -> None:
    async def scenario() -> None:
        process = PickerProcess([])
        await process.start()
        with pytest.raises(InputError, match="JSON object, not 'I am ready'"):
            await asyncio.wait_for(process.wait_ready(), PATIENCE)
        assert await asyncio.wait_for(process.wait_exit(), PATIENCE) == 0

    asyncio.run(scenario())
    assert impostor.exists()


def test_a_picker_that_ends_at_once_is_not_ready() -> None:
    async def scenario() -> None:
        process = PickerProcess(["--policy", "jsq"])  # no address to listen on
        await process.start()
        assert not await asyncio.wait_for(process.wait_ready(), PATIENCE)
        assert await process.wait_exit() == 2
        with pytest.raises(AssertionError, match="not ready"):
            print(process.ready)

    asyncio.run(scenario())


def test_a_picker_process_knows_its_ports() -> None:
    async def scenario() -> tuple[Ready, int]:
        options = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--pool", "127.0.0.1:9", "--policy", "jsq"]
        process = PickerProcess(options)
        await process.start()
        try:
            assert await asyncio.wait_for(process.wait_ready(), PATIENCE)
        finally:
            await process.stop()
        return process.ready, await process.wait_exit()

    ready, code = asyncio.run(scenario())
    assert (ready.pools, ready.policy, code) == (1, "jsq", 0)
    assert min(ready.listen.port, ready.admin.port) > 0
