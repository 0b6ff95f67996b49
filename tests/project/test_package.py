"""The package as users get it: a wheel, quick to import, typed."""

import ast
import re
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from evenly.web.assets import CONTENT_TYPES

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


def build_wheel(folder: Path) -> Path:
    command = [str(UV), "build", "--quiet", "--no-build-isolation", "--wheel", "--out-dir", str(folder), str(ROOT)]
    subprocess.run([*command, "--python", sys.executable], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.full
def test_a_wheel_builds_installs_and_runs_outside_the_checkout(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"evenly/py.typed", "evenly/paper/report/paper-map.md", "evenly/paper/report/report.html.jinja"} <= set(
        names
    )
    static = {path for path in (ROOT / "src" / "evenly" / "web").rglob("*") if path.suffix in CONTENT_TYPES}
    assert {f"evenly/{path.relative_to(ROOT / 'src' / 'evenly').as_posix()}" for path in static} <= set(names)
    assert "evenly/web/vendor/uPlot.LICENSE" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "bench/", "chaos/")) for name in names)

    site = tmp_path / "site"
    install = [str(UV), "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run([*install, "--python", sys.executable], check=True, capture_output=True)
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); import evenly; print(evenly.__file__);"
        "print(evenly.simulate(evenly.Scenario(policy='round-robin', pools=10, load=2, horizon=20)).events)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    where, events = done.stdout.split()
    assert Path(where).is_relative_to(site)
    assert int(events) > 100


def test_importing_evenly_loads_nothing_heavy() -> None:
    code = (
        "import sys, evenly; print(sorted({'numpy', 'numba', 'scipy', 'matplotlib', 'typer'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from evenly.cli.main import main; code = main(['--help']);"
        "print('HEAVY', sorted({'numpy', 'numba', 'scipy', 'matplotlib'} & set(sys.modules)), code)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.rstrip().endswith("HEAVY [] 0")


FRONT_DOORS = (
    *("evenly", "evenly.advice", "evenly.live.agents", "evenly.paper", "evenly.sim", "evenly.sweeps"),
    "evenly.theory",
)


def test_every_public_name_resolves_and_has_a_type() -> None:
    for package in FRONT_DOORS:
        door = import_module(package)
        for name in dir(door):
            assert getattr(door, name) is not None
        assert set(door.__all__) <= set(dir(door))
        stub = ast.parse(Path(str(door.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
        typed = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
        assert typed == set(dir(door))
        with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
            _ = door.nothing


def test_a_bare_import_reaches_what_the_documentation_names() -> None:
    code = (
        "import evenly; print(evenly.theory.predict_fluid, evenly.paper.figures.settling, evenly.core.Dispatcher)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.count("<") == 3


HEADING = re.compile("^## .*$", re.MULTILINE)
# The five that nothing else runs and that are missed first, each with a row that it prints.
BENCHMARKS = {
    "simulator": "aggregate kernel / SimPy",
    "records": "with all records, cost",
    "live-balance": "JSQ: spread",
    "live-speed": "evenly: session starts, direct to the picker",
    "fleet-balance": "JSQ: spread",
}


@pytest.mark.full
@pytest.mark.parametrize("section", BENCHMARKS)
def test_a_benchmark_runs_at_toy_size(section: str, tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    before = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    page.write_text(before, encoding="utf-8")
    command = [sys.executable, "-m", "bench", "--rounds", "1", "--scale", "0.02", "--write", str(page)]
    done = subprocess.run([*command, "--only", section], check=True, capture_output=True, text=True, cwd=ROOT)
    assert BENCHMARKS[section] in done.stdout
    after = page.read_text(encoding="utf-8")
    assert BENCHMARKS[section] in after
    assert HEADING.findall(after) == HEADING.findall(before)  # the other sections stay
