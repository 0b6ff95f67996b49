"""The example that measures how the threshold settles under each service law, and the page that shows it."""

from pathlib import Path

import pytest

from examples.service_laws import ARRIVALS, SERVICES, main

PAGE = Path(__file__).parents[2] / "docs/background/service-laws.md"


@pytest.mark.slow
def test_the_example_measures_every_law(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "service-laws.png"
    main(["--quick", "--out", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    found = {
        row[0]: [float(number) for number in row[1:]] for row in rows if row and row[0] in SERVICES + ARRIVALS
    }
    assert list(found) == [*SERVICES, *ARRIVALS]
    assert found["deterministic"][1] == pytest.approx(5 / 5.5, abs=0.01)  # load * t = 5
    assert found["exponential"][1] == pytest.approx(2.398, abs=0.1)  # load * (1 - exp(-t)) = 5


def test_the_page_has_a_row_for_every_law() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for law in (*SERVICES, *ARRIVALS):
        assert f"| `{law}` |" in text
