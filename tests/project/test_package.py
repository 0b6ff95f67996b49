"""The package as users get it: a wheel, quick to import, typed."""

import ast
import re
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import evenly
from bench.page import MEASURED
from evenly.web.assets import CONTENT_TYPES

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


def build_wheel(folder: Path) -> Path:
    command = [str(UV), "build", "--quiet", "--no-build-isolation", "--wheel", "--out-dir", str(folder), str(ROOT)]
    subprocess.run([*command, "--python", sys.executable], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
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
        "print(evenly.simulate(evenly.Scenario(pools=10, load=2, horizon=20)).events)"
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("package", FRONT_DOORS)
def test_every_public_name_resolves_and_has_a_type(package: str) -> None:
    door = import_module(package)
    for name in dir(door):
        assert getattr(door, name) is not None
    assert set(door.__all__) <= set(dir(door))
    stub = ast.parse(Path(str(door.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    typed = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == set(dir(door))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = door.nothing


@pytest.mark.slow
def test_a_bare_import_reaches_what_the_documentation_names() -> None:
    code = (
        "import evenly; print(evenly.theory.predict_fluid, evenly.paper.figures.settling, evenly.core.Dispatcher)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.count("<") == 3


# These pages name places in the code, also inside modules that need an import of their own.
PLACES = ("paper-map.md", "live.md", "architecture.md", "decisions")
REACH = """
import sys
from importlib import import_module
import evenly

for line in sys.argv[1:]:
    name, is_place = line.split()
    found, parts = evenly, name.split(".")
    for count, part in enumerate(parts[1:], 2):
        if is_place == "True" and not hasattr(found, part):
            import_module(".".join(parts[:count]))
        found = getattr(found, part)
"""


def documented_names() -> dict[str, list[str]]:
    """Return every dotted name in backticks, by its first part, and whether only pages about places have it."""
    is_place: dict[str, bool] = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        of_places = any(part in PLACES for part in page.parts)
        for name in re.findall(r"`(evenly(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`", page.read_text(encoding="utf-8")):
            is_place[name] = is_place.get(name, True) and of_places
    rooms: dict[str, list[str]] = {}
    for name, place in sorted(is_place.items()):
        rooms.setdefault(name.split(".")[1], []).append(f"{name} {place}")
    return rooms


def reach(*lines: str) -> None:
    """Look the names up in a new interpreter, which has not imported anything of ours."""
    command = [sys.executable, "-c", REACH, *lines]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


DOCUMENTED = documented_names()


@pytest.mark.slow
@pytest.mark.parametrize("room", DOCUMENTED)
def test_every_documented_name_is_reached_from_a_bare_import(room: str) -> None:
    reach(*DOCUMENTED[room])


@pytest.mark.slow
def test_the_documentation_names_the_rooms() -> None:
    assert {"live", "paper", "sim", "theory"} <= DOCUMENTED.keys()
    for name in ("evenly.errors.InputError", "evenly.frames.Table", "evenly.live", "evenly.CoupledRun"):
        reach(f"{name} False")


def test_the_version_is_the_same_everywhere() -> None:
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None
    assert declared[1] == evenly.__version__
    assert f"## [{evenly.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_pins_name_no_host_and_carry_hashes() -> None:
    for name in ("dev.txt", "ray.txt", "uv.txt"):
        text = (ROOT / "requirements" / name).read_text()
        assert "://" not in text
        packages = [line for line in text.splitlines() if re.match(r"[a-z0-9]", line)]
        assert packages
        assert all(line.endswith("\\") and "==" in line for line in packages)


# A part of the sections each, so that they run side by side, and a row of each part.
BENCHMARKS = {
    ("simulator", "records", "slow-corners", "late-messages"): (
        "aggregate kernel / SimPy",
        "with all records, cost",
        "next simulate",
    ),
    ("own-policy", "sessions", "playground", "sweeps", "sweeps-gpu"): ("local, two processes / one",),
    ("live-balance", "live-speed", "live-scrapes", "live-dashboards", "live-memory"): (
        "evenly: session starts, direct to the picker",
    ),
    ("siege",): ("rapid resets: evenly, innocents lost | 0 |",),
    ("fleet-balance", "fleet-speed", "fleet-scale", "fleet-recovery"): ("one of two dispatchers killed",),
}


@pytest.mark.slow
@pytest.mark.parametrize("sections", BENCHMARKS, ids=lambda sections: sections[0])
def test_the_benchmarks_run_at_toy_size(sections: tuple[str, ...], tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "bench", "--rounds", "1", "--scale", "0.02", "--write", str(page)]
    done = subprocess.run([*command, "--only", *sections], check=True, capture_output=True, text=True, cwd=ROOT)
    assert all(row in done.stdout and row in page.read_text() for row in BENCHMARKS[sections])


def test_every_benchmark_runs_at_toy_size() -> None:
    assert sorted(MEASURED) == sorted(section for part in BENCHMARKS for section in part)
