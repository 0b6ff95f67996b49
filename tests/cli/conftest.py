"""Run commands in this process, as the console script does."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from evenly.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """Return the JSON object on stdout, which must be all of it."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Call `evenly` with these arguments."""

    def call(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
