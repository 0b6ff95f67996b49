""" "Copy as command" gives the line that reproduces the figures, and an address holds the whole state."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from evenly.cli.main import main
from tests.web.playground.node import differences, in_node

# Every policy, with load steps, a warm-up, a delay and an initial state; times that are no short decimals.
LINKS = {
    "scene=sandbox&seed=7&pools=30&load=4.5&lanes=threshold:t0:a0.9,jsq,power-of-d:d3,random&delay=0&initial=0"
    "&speed=1&do=&t=9.137": "",
    "scene=sandbox&seed=9007199254740991&pools=12&load=3&lanes=round-robin,jiq,jbt:t4,threshold:t3&delay=0"
    "&initial=2&speed=1&do=average@1.5=0;load@2.71828=6;load@4.25=1.5&t=7.0123456789": "",
    "scene=late&seed=3&pools=20&load=5.5&lanes=threshold:t0:a0.85,jsq,power-of-d:d2,random&delay=0.07&initial=0"
    "&speed=0.25&do=load@3=9&t=6": "",
    "scene=sandbox&seed=1&pools=10&load=2.5&lanes=jsq&delay=0&initial=0&speed=1"
    "&do=kill@1=3;threshold@2=5/0;load@8=2&t=4": "pools that you killed and thresholds that you set by hand",
}


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    return dict(zip(LINKS, in_node("command.mjs", list(LINKS)), strict=True))


def test_an_address_that_is_read_and_written_is_the_same(answers: dict[str, Any]) -> None:
    for link, answer in answers.items():
        assert answer["written"] == link
        assert answer["leftOut"] == LINKS[link]


def test_the_command_has_the_figures(answers: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    for link, answer in answers.items():
        if LINKS[link]:
            continue
        for line, figures in zip(answer["commands"], answer["figures"], strict=True):
            words = shlex.split(line)
            assert words.pop(0) == "evenly"
            # Batches add up in another order, which changes the last digit.
            assert main([*words, "--batches", "0", "--json"]) == 0, line
            theirs = json.loads(capsys.readouterr().out)
            names = (
                "events",
                "mean_tasks",
                "pools_with_exactly",
                "spread",
                "imbalance",
                "without_token",
                "messages",
            )
            ours = {name: figures[name] for name in names}
            if figures["threshold"] is not None:
                ours["threshold"] = figures["threshold"]
            assert differences(ours, theirs) == [], line
