"""Mutation testing: change the code in one place at a time, and see whether a test fails.

    python -m tests.mutation src/evenly/core --tests tests/core

Prints each mutant that survives as `file:line: old -> new`, and exits with 1 if there are any. Mutants listed in
`tests/mutation-explained.toml` are not tried. An entry there gives the file, the source line without indentation,
the mutation (one, a list, or none for all mutations of that line) and why no test can or should notice it.

Everything runs in a copy of `src` and `tests`. A mutant in a function is first tried in a fork of a process that
has collected the tests: the function's code is replaced, and the tests that called it in the clean run follow. If
they pass, or if the mutant is not in a function, a new process imports the mutant and runs all tests. Processes
started by a test import the mutant too. Hypothesis is deterministic and tries few examples.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import gc
import importlib
import inspect
import json
import math
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[1]
EXPLAINED = Path(__file__).parent / "mutation-explained.toml"
EXAMPLES = 25  # hypothesis
MEMORY = 4 << 30  # bytes: a mutant may allocate without end
NOT_PRELOADED = (
    "evenly",
    "tests",
    "grpc",
    "_hypothesis_pytestplugin",
    "xdist",
    "anyio",
)  # grpc does not survive a fork
PYTEST = (
    "-x",
    "-q",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)

CHUNK = 20  # mutants that share one collection of the tests
LOG, CLEAN, ALIVE = "mutation.log", "mutation-clean.json", "mutation-alive.json"  # files in a copy of the tree

Calls = set[tuple[str, int]]  # of functions: file, first line


class FewExamples:
    """A pytest plugin: hypothesis repeats itself, and is quick."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Replace the profile of the suite."""
        settings.register_profile(
            "mutation",
            derandomize=True,
            database=None,
            deadline=None,
            max_examples=EXAMPLES,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("mutation")
        unlimited = settings.__init__

        def limited(self: settings, parent: settings | None = None, **given: Any) -> None:  # noqa: ANN401
            if "max_examples" in given:
                given["max_examples"] = min(given["max_examples"], EXAMPLES)
            unlimited(self, parent, **given)

        settings.__init__ = limited  # type: ignore[method-assign]  # for tests that ask for more


@dataclass
class CleanRun:
    """A pytest plugin: which test calls which functions, and how long it takes in seconds."""

    calls: dict[str, Calls] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)
    _now: Calls = field(default_factory=set)

    def _trace(self, frame: FrameType, event: str, arg: object) -> None:
        self._now.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        """Watch one test with its fixtures."""
        self._now = self.calls[item.nodeid] = set()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        begun = time.monotonic()
        yield
        self.seconds[item.nodeid] = time.monotonic() - begun
        sys.settrace(None)

    def save(self, tree: Path) -> None:
        """Write all of it into the tree, with the calls of the tree's own source only."""
        source = f"{tree / 'src'}{os.sep}"
        calls = {
            test: sorted((file.removeprefix(source), line) for file, line in found if file.startswith(source))
            for test, found in self.calls.items()
        }
        data = {"calls": calls, "seconds": self.seconds, "modules": sorted(sys.modules)}
        (tree / CLEAN).write_text(json.dumps(data))

    @classmethod
    def load(cls, tree: Path) -> CleanRun:
        """Read what `save` wrote."""
        data: dict[str, Any] = json.loads((tree / CLEAN).read_text())
        calls = {test: {(file, line) for file, line in found} for test, found in data["calls"].items()}
        return cls(calls, data["seconds"], data["modules"])

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that call the mutated function, the quickest first."""
        lines = range(mutant.first_line, mutant.last_line + 1)
        found = (
            test for test, calls in self.calls.items() if any(f == mutant.file and n in lines for f, n in calls)
        )
        return sorted(found, key=self.seconds.__getitem__)


@dataclass(frozen=True)
class Only:
    """A pytest plugin: run these tests, in this order."""

    tests: list[str]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select the tests to run, and sort them."""
        rank = {test: position for position, test in enumerate(self.tests)}
        items[:] = sorted((item for item in items if item.nodeid in rank), key=lambda item: rank[item.nodeid])


def in_fork(act: Callable[[], int], *, tree: Path | None = None, timeout: float = math.inf) -> int | None:
    """Return the exit code of `act`, run in a fork that imports from `tree`; None if it took too long."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setsid()
            if tree is not None:
                _enter(tree)
            code = act()
        finally:
            sys.stdout.flush()
            os._exit(code)
    try:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # processes that the tests left behind


def _enter(tree: Path) -> None:
    output = os.open(tree / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    os.chdir(tree)
    os.environ |= {
        "PYTHONPATH": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",  # two mutants of a file can have the same size and time
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(tree / "src"), str(tree)]
    for module in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[module]


class QuickTrials:
    """A pytest plugin: try mutants in forks of this process, and keep those with which the tests pass."""

    def __init__(self, bench: Bench, mutants: list[Mutant]) -> None:
        self.alive: list[int] = []  # positions
        self._bench = bench
        self._mutants = mutants

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests of each mutant instead of all tests."""
        items = {item.nodeid: item for item in session.items}
        functions = [found for found in gc.get_objects() if isinstance(found, FunctionType)]
        for position, mutant in enumerate(self._mutants):
            tests = self._bench.clean.tests_of(mutant)
            with self._bench.changed(mutant) as path:
                if self._passes(mutant, path, functions, [items[test] for test in tests]):
                    self.alive.append(position)
        return True

    def _passes(self, mutant: Mutant, path: Path, functions: list[FunctionType], items: list[pytest.Item]) -> bool:
        code = code_at(mutant.first_line, compile(path.read_bytes(), path, "exec"))
        where = (str(path), mutant.first_line)
        found = [each for each in functions if (each.__code__.co_filename, each.__code__.co_firstlineno) == where]
        if code is None or not found or not items:
            return True

        def act() -> int:
            for function in found:
                function.__code__ = code
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if item.session.testsfailed:
                    return 1
            return 0

        return in_fork(act, timeout=self._bench.patience(item.nodeid for item in items)) == 0


def code_at(line: int, code: CodeType) -> CodeType | None:
    """Return the code of the function that begins at this line of the module, looking into classes."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            is_function = bool(inner.co_flags & inspect.CO_NEWLOCALS)
            found = (inner if inner.co_firstlineno == line else None) if is_function else code_at(line, inner)
            if found is not None:
                return found
    return None


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A copy of the tree, and the tests that judge its mutants."""

    tree: Path
    clean: CleanRun

    def survivors(self, mutants: list[Mutant]) -> list[Mutant]:
        """Return the mutants with which all tests pass."""
        inside = [mutant for mutant in mutants if self.clean.tests_of(mutant)]

        def act() -> int:
            trials = QuickTrials(self, inside)
            code = int(pytest.main([*PYTEST, *files_of(self.clean.seconds)], plugins=[FewExamples(), trials]))
            (self.tree / ALIVE).write_text(json.dumps(trials.alive))
            return code

        if inside and in_fork(act, tree=self.tree) != 0:
            raise RuntimeError((self.tree / LOG).read_text())
        alive = [inside[position] for position in json.loads((self.tree / ALIVE).read_text())] if inside else []
        return [mutant for mutant in mutants if mutant in alive or mutant not in inside if self._survives(mutant)]

    def _survives(self, mutant: Mutant) -> bool:
        near = self.clean.tests_of(mutant)
        others = sorted(self.clean.seconds.keys() - set(near), key=self.clean.seconds.__getitem__)
        tests = [*near, *others]
        with self.changed(mutant):
            code = in_fork(
                lambda: int(pytest.main([*PYTEST, *files_of(tests)], plugins=[FewExamples(), Only(tests)])),
                tree=self.tree,
                timeout=self.patience(tests),
            )
        if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise RuntimeError((self.tree / LOG).read_text())
        return code == 0

    @contextlib.contextmanager
    def changed(self, mutant: Mutant) -> Iterator[Path]:
        """Put the mutant in its file for a while."""
        path = self.tree / "src" / mutant.file
        original = path.read_bytes()
        path.write_bytes(mutant.applied_to(original))
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        try:
            yield path
        finally:
            path.write_bytes(original)

    def patience(self, tests: Iterable[str]) -> float:
        """Return the seconds after which the tests are stopped: a mutant may loop forever."""
        return 10 + 5 * sum(self.clean.seconds[test] for test in tests)


def files_of(tests: Iterable[str]) -> list[str]:
    """Return the files of the tests."""
    return sorted({test.partition("::")[0] for test in tests})


def copy_tree(tree: Path) -> None:
    """Copy what mutants and tests need. The rest of the repository is linked."""
    tree.mkdir()
    for path in ROOT.iterdir():
        if path.name in ("src", "tests"):
            shutil.copytree(path, tree / path.name, ignore=shutil.ignore_patterns("__pycache__"))
            compileall.compile_dir(tree / path.name, quiet=2)
        else:
            (tree / path.name).symlink_to(path)


def clean_run(tree: Path, tests: list[str]) -> CleanRun:
    """Run the tests on the code as it is, and load the libraries that they use, which saves time in every fork."""

    def act() -> int:
        run = CleanRun()
        code = int(pytest.main([*PYTEST, *tests], plugins=[FewExamples(), run]))
        run.save(tree)
        return code

    if in_fork(act, tree=tree, timeout=1800) != 0:
        sys.exit(f"The tests fail without a mutant:\n{(tree / LOG).read_text()[-3000:]}")
    clean = CleanRun.load(tree)
    for module in clean.modules:
        if not module.startswith((*NOT_PRELOADED, "_")):  # asyncio breaks if its `_asyncio` comes first
            with contextlib.suppress(Exception):
                importlib.import_module(module)
    gc.freeze()  # a collection in a fork would copy every page
    return clean


def is_explained(mutant: Mutant, entries: Iterable[dict[str, Any]]) -> bool:
    """Return whether an entry matches the mutant."""
    for entry in entries:
        wanted = entry.get("mutation", [mutant.change])
        wanted = [wanted] if isinstance(wanted, str) else wanted
        if (entry["file"], entry["line"]) == (f"src/{mutant.file}", mutant.text) and mutant.change in wanted:
            return True
    return False


BENCH: list[Bench] = []  # of this worker process


def start_worker(benches: Any) -> None:  # noqa: ANN401  (a queue of the multiprocessing context)
    """Take a copy of the tree for a worker process."""
    BENCH.append(benches.get())


def judge(mutants: list[Mutant]) -> tuple[list[Mutant], int]:
    """Return the mutants that survive, and how many were tried."""
    return BENCH[0].survivors(mutants), len(mutants)


def survivors(mutants: list[Mutant], tests: list[str], jobs: int) -> list[Mutant]:
    """Return the mutants with which all tests pass."""
    context = multiprocessing.get_context("fork")
    found: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        trees = [Path(folder, str(job)) for job in range(jobs)]
        for tree in trees:
            copy_tree(tree)
        clean = clean_run(trees[0], tests)
        benches = context.Queue()
        for tree in trees:
            benches.put(Bench(tree=tree, clean=clean))
        with context.Pool(jobs, start_worker, (benches,)) as pool:
            tried = 0
            chunks = [mutants[at : at + CHUNK] for at in range(0, len(mutants), CHUNK)]
            for survived, count in pool.imap_unordered(judge, chunks):
                found += survived
                tried += count
                for mutant in survived:
                    print(mutant, flush=True)
                print(f"{tried} of {len(mutants)} tried, {len(found)} survived", file=sys.stderr)
    return found


def main() -> None:
    """Read the command line, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="Files or folders under src to mutate.")
    parser.add_argument("--tests", nargs="+", required=True, help="Files or folders of tests.")
    parser.add_argument("--sample", type=int, help="Try this many mutants, drawn at random (default: all).")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the sample (default: 1).")
    parser.add_argument("--jobs", type=int, default=1, help="Mutants to try at the same time (default: 1).")
    parser.add_argument("--match", default="", help="Only mutants whose printed line contains this text.")
    given = parser.parse_args()
    files = sorted(file for path in given.paths for file in ([path] if path.is_file() else path.rglob("*.py")))
    mutants = [mutant for file in files for mutant in mutants_of(file.resolve(), ROOT / "src")]
    entries = tomllib.loads(EXPLAINED.read_text())["explained"] if EXPLAINED.exists() else []
    for entry in entries:
        of_file = [mutant for mutant in mutants if f"src/{mutant.file}" == entry["file"]]
        if of_file and not any(is_explained(mutant, [entry]) for mutant in of_file):
            sys.exit(f"There is no such mutant any more: {entry}")
    mutants = [mutant for mutant in mutants if given.match in str(mutant)]
    unexplained = [mutant for mutant in mutants if not is_explained(mutant, entries)]
    explained = len(mutants) - len(unexplained)
    if given.sample is not None:
        unexplained = random.Random(given.seed).sample(unexplained, min(given.sample, len(unexplained)))
    begun = time.monotonic()
    found = survivors(unexplained, given.tests, given.jobs)
    print(
        f"{len(unexplained)} mutants tried, {len(found)} survived; {explained} more are explained;"
        f" {time.monotonic() - begun:.0f} s."
    )
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
