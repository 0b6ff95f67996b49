"""`evenly sweep`: lists and ranges, files, resume, pictures, dry runs, refusals."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evenly.cli.main import app
from evenly.cli.sweep_progress import _lines, status_text
from evenly.sweeps import Status
from tests.cli.conftest import Run
from tests.sweeps.support import run_inline, small_plan

SMALL = ("--pools", 5, "--load", "1.5,2.5", "--alpha", "0.7:0.9:0.1", "--horizon", 5, "--workers", 1)
VALUES = ("--values", "spread,threshold_share")


def test_a_sweep_runs_is_drawn_and_is_not_run_again(run: Run, tmp_path: Path) -> None:
    import polars as pl

    out, picture = tmp_path / "out", tmp_path / "heat.png"
    first = run("sweep", *SMALL, *VALUES, "--out", out)
    assert first.code == 0
    assert all(re.search("^Compiling| of 6 points, 0 failed", line) for line in first.err.splitlines())
    assert re.match(
        r"6 points: 6 run in .* s, 0 reused, 0 failed\nwithout intervals: 6 points, .*\nrows in .*/out\n",
        first.out,
    )
    rows = pl.read_parquet(out / "*.parquet")
    assert len(rows) == 6
    assert set(rows["alpha"]) == {0.7, 0.8, 0.9}
    shown = ("--plot", picture, "--x", "alpha", "--y", "load", "--value", "spread")
    second = run("sweep", *SMALL, *VALUES, "--out", out, *shown, "--json").json()
    assert (second["points"], second["done"], second["reused"], second["failed"]) == (6, 0, 6, 0)
    assert second["axes"] == {"load": [1.5, 2.5], "alpha": [0.7, 0.8, 0.9]}
    assert picture.read_bytes().startswith(b"\x89PNG")
    inline = tmp_path / "inline"
    run_inline(inline, small_plan())
    assert pl.read_parquet(inline / "*.parquet").sort("point").equals(rows.sort("point"))


def test_points_have_intervals_by_default_which_simulate_repeats(run: Run, tmp_path: Path) -> None:
    """From 50 mean task times on. The defaults are those of `simulate`."""
    import polars as pl

    system = ("--pools", 5, "--alpha", 0.8, "--horizon", 60, "--warmup", 10)
    done = run("sweep", *system, "--load", "1.5,2.5", "--out", tmp_path / "out", "--workers", 1)
    assert "without intervals" not in done.out
    row = pl.read_parquet(tmp_path / "out" / "*.parquet").sort("load").row(0, named=True)
    found = run("simulate", *system, "--load", 1.5, "--seed", row["point_seed"], "--json").json()
    for name, mean in (("spread", found["spread"]["mean"]), ("mean_tasks", found["mean_tasks"])):
        assert (row[name], row[f"{name}_ci95"]) == pytest.approx((mean, found["ci95"][name]), rel=1e-12)
        assert row[f"{name}_ci95"] > 0


def test_a_dry_run_starts_and_writes_nothing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("sweep", *SMALL, "--dry-run")
    assert done.code == 0
    assert re.match(r"6 points, 6 of them to run: about [\d,]+ events, .* on 1 process, 0.0 MB.\n", done.out)
    found = run("sweep", *SMALL, "--dry-run", "--json").json()
    assert found["points"] == found["missing"] == 6
    assert list(tmp_path.iterdir()) == []
    run_inline(tmp_path / "evenly-sweep", small_plan(load="1.5"))
    assert run("sweep", *SMALL, *VALUES, "--dry-run", "--json").json()["missing"] == 3


def test_a_million_points_are_planned(run: Run, tmp_path: Path) -> None:
    done = run("sweep", "--pools", 10, "--alpha", "0.001:0.999:0.001", "--load", "0.01:10.01:0.01", "--horizon", 1,
               "--out", tmp_path / "out", "--dry-run", "--json")  # fmt: skip
    assert done.json()["points"] == 999 * 1001


def test_a_file_has_lists_and_the_command_line_overrides_it(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(
        'pools = [5, 6]\nload = "1.5:2.5:0.5"\nalpha = [0.8, "0.9"]\npolicy = ["threshold", "jsq"]\nhorizon = 5\n'
        'zip = ["alpha,pools"]\nvalues = ["spread"]\nreport_interval = 3\n'
    )
    found = run("sweep", "--scenario", file, "--dry-run", "--json", "--out", tmp_path / "out").json()
    assert found["points"] == 2 * 2 * 3
    found = run("sweep", "--scenario", file, "--load", 4, "--dry-run", "--json", "--out", tmp_path / "out").json()
    assert found["points"] == 2 * 2
    file.write_text('pools = 5\nschedule = ["0:1.5", "0:2.5,3:1"]\nhorizon = 5\n')
    assert run("sweep", "--scenario", file, "--dry-run", "--json").json()["points"] == 2
    file.write_text("pools = 5\nhorizon = 5\nschedule = [{start = 0, load = 1.5}, {start = 2, load = 3}]\n")
    assert run("sweep", "--scenario", file, "--dry-run", "--json").json()["points"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pools", "a"), "--pools must be a whole number from 1 to 1000000000, not 'a'."),
        (("--load", "1.5,,2"), "--load must be a value, a list or a range, not '1.5,,2'."),
        (("--alpha", "0.5:1.5:0.5"), "The point load 1.5, alpha 1.0 is impossible. alpha must lie"),
        (("--values", "spraed"), "There is no value 'spraed'; did you mean 'spread'?"),
        (("--until", "spread"), '--until must be written like "spread < 0.005"'),
        (("--zip", "load,alpha"), "need equal numbers of values, but load has 2 and alpha has 3."),
        (("--zip", "load,lod"), "A sweep has no option 'lod'; did you mean 'load'?"),
        (("--engine", "cpu"), "--engine must be one of local, ray, gpu, not 'cpu'."),
        (("--ray-address", "auto"), "--ray-address is for engine ray, not local."),
        (("--x", "load"), "--x, --y, --value and --facet are about a plot: give --plot FILE too."),
        (
            ("--plot", "a.png", "--x", "pools"),
            "x must be an option with several values (load, alpha), not 'pools'.",
        ),
        (("--plot", "a.png", "--value", "threshold_share"), "threshold_share is a list at each point"),
        (("--plot", "a.gif"), "--plot must name a file that ends in .png"),
        (("--out", ""), "--out must be a text, not ''."),
    ],
)
def test_bad_input_ends_in_one_sentence(
    run: Run, options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [each for each in zip(SMALL[::2], SMALL[1::2], strict=True) if each[0] not in options]
    if "ray" in " ".join(options):
        given = [each for each in given if each[0] != "--workers"]
    done = run("sweep", *(word for pair in given for word in pair), *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_number_of_pools_is_needed(run: Run) -> None:
    assert run("sweep", "--load", 1).err == "evenly: Give the number of pools: --pools N.\n"


@pytest.mark.full
def test_a_failed_point_is_named_and_ends_in_exit_code_3(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fails_for_sweep.py").write_text(
        "from evenly.core import JoinShortestQueue\n"
        "class Fails(JoinShortestQueue):\n    def arrive(self, choose):\n        raise KeyError('gone')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    options = ("--pools", 2, "--load", 1, "--horizon", 1, "--policy", "jsq,fails_for_sweep:Fails", "--workers", 1)
    done = run("sweep", *options)
    assert done.code == 3
    assert "2 points: 2 run in" in done.out
    assert "1 failed\n  failed: The policy fails_for_sweep:Fails failed in arrive: KeyError: 'gone'" in done.out
    stopped = run("sweep", *options, "--fail-fast")
    assert (stopped.code, stopped.out) == (3, "")
    assert "evenly: The point policy fails_for_sweep:Fails failed: The policy" in stopped.err


def test_the_status_is_told_in_lines_ever_more_rarely() -> None:
    shown: list[str] = []
    now = 0.0
    report = _lines(shown.append, lambda: now)
    times = []
    for second in range(200):
        now = float(second)
        before = len(shown)
        report(Status(1000, 100, second, 3, 130.0))
        times += [second] * (len(shown) - before)
    assert times == [2, 6, 14, 30, 62, 122, 182]
    assert shown[0] == "102 of 1,000 points, 3 failed, about 2.2 minutes left"
    assert status_text(Status(10, 0, 1, 0, None)) == "1 of 10 points, 0 failed"
    assert status_text(Status(10, 0, 1, 0, 40.4)) == "1 of 10 points, 0 failed, about 40 seconds left"


def test_the_help_shows_every_option_of_simulate() -> None:
    def options(command: str) -> set[str]:
        root: Any = __import__("typer").main.get_command(app)
        return {name for each in root.commands[command].params for name in each.opts}

    assert options("simulate") - options("sweep") == {"--save", "--record"}
    text = CliRunner().invoke(app, ["sweep", "--help"]).output
    assert "Example: evenly sweep" in text
    assert json.dumps(text)
