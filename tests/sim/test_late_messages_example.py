"""The example that measures what late messages cost."""

from pathlib import Path

import pytest


@pytest.mark.full
def test_the_example_draws_every_policy_at_every_delay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from examples.late_messages import KINDS, POLICIES, QUICK_DELAYS, main

    out = tmp_path / "late-messages.png"
    main(["--quick", "--out", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    numbers = [row for row in rows if len(row) == len(POLICIES) + 3 and row[0] != "delay"]
    assert [row[0] for row in numbers] == ["0"] + [f"{kind}{delay:g}" for kind in KINDS for delay in QUICK_DELAYS]
    jsq = list(POLICIES).index("jsq") + 1
    assert all(float(late[jsq]) > float(numbers[0][jsq]) for late in numbers[1:])  # late messages cost evenness
