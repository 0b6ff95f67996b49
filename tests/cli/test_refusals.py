"""A refusal is one line of plain characters that ends like a sentence, whatever was typed."""

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["simulate", "--scenario", "a\nb"], "Cannot read 'a\\nb': no such file or directory."),
        (["simulate", "--scenario", "a\x1b[31m"], "Cannot read 'a\\x1b[31m': no such file or directory."),
        (["simulate", "--scenario", "\udcff"], "Cannot read '\\udcff': no such file or directory."),
        (["simulate", "--nope"], "No such option: --nope."),
        (["simulate", "--pools"], "Option '--pools' requires an argument."),
        (["nope"], "No such command 'nope'."),
    ],
)
def test_refusals_are_one_printable_line(run: Run, arguments: list[str], sentence: str) -> None:
    outcome = run(*arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"evenly: {sentence}\n")
