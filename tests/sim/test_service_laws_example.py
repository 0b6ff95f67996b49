"""The example that measures how the threshold settles under each service law, and the page that shows it."""

from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/background/service-laws.md"


@pytest.mark.full
def test_the_example_measures_every_law(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from examples.service_laws import ARRIVALS, SERVICES, main

    out = tmp_path / "service-laws.png"
    main(["--quick", "--out", str(out)])
    assert out.read_bytes().startswith(b"\x89PNG")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    found = {
        row[0]: [float(number) for number in row[1:]] for row in rows if row and row[0] in [*SERVICES, *ARRIVALS]
    }
    assert list(found) == [*SERVICES, *ARRIVALS]
    assert found["deterministic"][1] == pytest.approx(5 / 5.5, abs=0.01)  # load * t = 5


def test_the_page_has_the_predictions_of_every_law() -> None:
    from examples.service_laws import SERVICES, predicted
    from tests.workload.laws import mean_within

    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for law, service in SERVICES.items():
        up, down = predicted(service)
        assert 5.5 * mean_within(law, up) == pytest.approx(5, abs=1e-7)
        assert 5.5 + 3.5 * (1 - mean_within(law, down)) == pytest.approx(5.93, abs=1e-7)
        cells = [
            cell.strip() for cell in next(line for line in lines if line.startswith(f"| `{law}` |")).split("|")
        ]
        assert (cells[3], cells[5]) == (f"{up:.2f}", f"{down:.2f}")
