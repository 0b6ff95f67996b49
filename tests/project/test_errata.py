"""The page of errata and sharpenings: every item has its evidence, and every command shows what it prints."""

from tests.project.test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "background" / "errata.md"


def test_every_command_is_followed_by_its_output() -> None:
    """`test_examples_run_as_printed` compares the two."""
    commands = blocks(PAGE)
    assert len(commands) >= 15
    assert {command.language for command in commands} <= {"console", "python"}
    assert all(command.prints for command in commands)
