"""The page of errata and sharpenings: every item has its evidence, and every command shows what it prints."""

import re

from tests.project.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "background" / "errata.md"


def test_every_command_is_followed_by_its_output() -> None:
    """`test_examples_run_as_printed` compares the two."""
    languages = [language for language, _ in blocks(PAGE)]
    commands = [language for language in languages if language != "text"]
    assert len(commands) >= 15
    assert set(commands) <= {"console", "python"}
    assert languages == [block for language in commands for block in (language, "text")]


def test_every_numbered_item_quotes_the_paper_or_states_a_result_and_has_evidence() -> None:
    text = PAGE.read_text(encoding="utf-8")
    items = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert [item.split(".")[0] for item in items] == [
        *(f"E{number}" for number in range(1, 12)),
        *(f"S{number}" for number in range(1, 10)),
    ]
    for item in items:
        title = item.splitlines()[0]
        assert "\n> " in item, f"{title}: no quote"
        assert "```text" in item or "*Evidence.*" in item, f"{title}: no evidence"
