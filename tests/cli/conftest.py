"""Running the command in this process, as the console script would."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from evenly.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
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
