"""`--policy module:Class`: imported from the current folder, compared, saved; bad ones end in one sentence."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evenly import Result
from tests.cli.conftest import Run

OPTIONS = ("--pools", 5, "--load", 1.5, "--horizon", 20)
SOURCE = """
import time

from evenly.core import JoinShortestQueue


class Mine(JoinShortestQueue):
    pass


class Needs(Mine):
    def __init__(self, memory):
        pass


class Nonsense(Mine):
    def arrive(self, choose):
        return "pool-3"


class Raises(Mine):
    def arrive(self, choose):
        raise KeyError("gone")


class Half:
    def join(self, pool, tasks):
        pass


class Asleep(Mine):
    def arrive(self, choose):
        print("asleep", flush=True)
        time.sleep(1e6)


number = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Go to a folder with modules; return the name of the good one, which is not in use by other tests."""
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    (tmp_path / f"{name}_broken.py").write_text("import a_package_that_is_missing")
    (tmp_path / f"{name}_syntax.py").write_text("def (")
    (tmp_path / f"{name}_exits.py").write_text("raise SystemExit(0)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    return name


def test_it_is_simulated_saved_and_plotted(run: Run, module: str) -> None:
    done = run(
        "simulate", *OPTIONS, "--policy", f"{module}:Mine", "--save", "run.npz", "--plot", "run.png", "--json"
    )
    assert (done.code, done.json()["policy"]) == (0, f"{module}:Mine")
    assert done.json()["messages"]["per_task"] > 0.8
    assert Result.read("run.npz").scenario.policy == f"{module}:Mine"
    assert "Mine: 5 pools, load 1.5" in run("simulate", *OPTIONS, "--policy", f"{module}:Mine").out


def test_it_is_compared_with_others(run: Run, module: str) -> None:
    found = run("compare", *OPTIONS, "--policies", f"jsq,{module}:Mine", "--json").json()["policies"]
    assert [each["policy"] for each in found] == ["jsq", f"{module}:Mine"]
    assert found[0]["mean_tasks"] == pytest.approx(found[1]["mean_tasks"], rel=1e-12)
    assert found[0]["events"] == found[1]["events"]


def test_a_scenario_file_names_it(run: Run, module: str) -> None:
    file = f'pools = 5\nload = 1.5\nhorizon = 20\nalpha = 0.8\npolicy = "{module}:Mine"\n'
    Path("file.toml").write_text(f'{file}policies = ["threshold", "{module}:Mine"]\n')
    assert run("simulate", "--scenario", "file.toml", "--json").json()["policy"] == f"{module}:Mine"
    found = run("compare", "--scenario", "file.toml", "--json").json()["policies"]
    assert [each["policy"] for each in found] == ["threshold", f"{module}:Mine"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("no_such_module:Mine", "There is no module 'no_such_module' for the policy no_such_module:Mine: it must"),
        ("{}.sub:Mine", "There is no module"),
        ("{}:Mime", "has no class Mime; did you mean Mine?"),
        ("{}:Zzzzzz", "has no class Zzzzzz."),
        ("{}:number", "must be a class, not 3."),
        ("{}:Needs", "made without arguments, but its constructor needs memory: give every parameter a default."),
        (
            "{}:Half",
            "must have the methods join, leave, arrive and depart, but it has no leave and no arrive and no",
        ),
        ("{}:Nonsense", "must return a pool from arrive, a whole number from 0 to 4, or None"),
        ("{}:Raises", "failed in arrive: KeyError: 'gone'."),
        (
            "{}_broken:Mine",
            "cannot be imported: ModuleNotFoundError: No module named 'a_package_that_is_missing'.",
        ),
        ("{}_syntax:Mine", "cannot be imported: SyntaxError: invalid syntax"),
        ("{}_exits:Mine", "cannot be imported: SystemExit: 0."),
        ("{}:", "--policy must be written module:Class, such as mymodule:MyPolicy, not"),
        ("{}:f.<locals>.Mine", "is defined in a function: give the class itself"),
    ],
)
def test_what_is_wrong_with_it_takes_one_sentence(run: Run, module: str, policy: str, words: str) -> None:
    done = run("simulate", *OPTIONS, "--policy", policy.format(module))
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_commands_that_do_not_simulate_refuse_it(run: Run) -> None:
    done = run("exact", "--pools", 2, "--load", 1, "--policy", "a:b")
    assert (done.code, done.out) == (2, "")
    assert "--policy must be one of threshold, jsq, power-of-d, random, not 'a:b'" in done.err


def test_the_installed_command_finds_it_in_the_current_folder(module: str) -> None:
    """A script on the PATH has its own folder first on the path of Python, not the current one."""
    script = "import sys; sys.path.pop(0); from evenly.cli.main import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["simulate", *map(str, OPTIONS), "--policy", f"{module}:Mine"]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=os.environ, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_policy_prints_does_not_mix_with_the_result(run: Run, module: str, tmp_path: Path) -> None:
    source = 'print("imported")\n' + SOURCE + "\n\nclass Talks(Mine):\n    def arrive(self, choose):\n"
    source += '        print("arrived")\n        return super().arrive(choose)\n'
    (tmp_path / f"{module}_talks.py").write_text(source)
    done = run("simulate", "--policy", f"{module}_talks:Talks", *OPTIONS, "--json")
    assert done.json()["policy"] == f"{module}_talks:Talks"
    assert done.err.startswith("imported\narrived\n")


def test_the_ending_of_the_file_is_no_part_of_the_name(run: Run, module: str) -> None:
    done = run("simulate", "--policy", f"{module}.py:Mine", *OPTIONS)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"evenly: The policy {module}.py:Mine must be written {module}:Mine, without .py.\n"


def test_one_interrupt_ends_a_policy_that_does_not_return(module: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evenly", "simulate", "--policy", f"{module}:Asleep", *map(str, OPTIONS)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stderr is not None
        while process.stderr.readline() != "asleep\n":  # after notes on compilation, if any
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in error
