"""Mutation testing: change the code in one place at a time, and see whether a test fails.

    python -m tests.mutation src/evenly/core --tests tests/core

Prints each mutant that survives as `file:line: old -> new`, and exits with 1 if there are any. Mutants listed in
`tests/mutation-explained.toml` are not tried. An entry there gives the file, the source line without indentation,
the mutation (one, a list, or none for all mutations of that line) and why no test can or should notice it.

Each mutant runs in a forked process, in a copy of `src` that comes first on the path; processes started by a test
import the mutant too. The tests that called the mutated function in the clean run go first, and the others follow
only if those pass. Hypothesis is deterministic and tries few examples.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import gc
import importlib
import json
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
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from importlib.util import cache_from_source
from pathlib import Path
from types import FrameType
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

        settings.__init__ = limited  # type: ignore[method-assign,assignment]  # for tests that ask for more


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

    def save(self, path: Path, source: Path) -> None:
        """Write all of it, with the calls of code under `source` only."""
        calls = {
            test: sorted((file, line) for file, line in found if file.startswith(str(source)))
            for test, found in self.calls.items()
        }
        path.write_text(json.dumps({"calls": calls, "seconds": self.seconds, "modules": sorted(sys.modules)}))

    @classmethod
    def load(cls, path: Path) -> CleanRun:
        """Read what `save` wrote."""
        data: dict[str, Any] = json.loads(path.read_text())
        calls = {test: {(file, line) for file, line in found} for test, found in data["calls"].items()}
        return cls(calls, data["seconds"], data["modules"])

    def tests_of(self, mutant: Mutant, source: Path) -> list[str]:
        """Return the tests that call the mutated function, the quickest first."""
        file = str(source / mutant.file)
        lines = range(mutant.first_line, mutant.last_line + 1)
        found = (test for test, calls in self.calls.items() if any(f == file and n in lines for f, n in calls))
        return sorted(found, key=self.seconds.__getitem__)


@dataclass(frozen=True)
class Only:
    """A pytest plugin: run these tests, in this order."""

    tests: list[str]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Select and sort."""
        rank = {test: position for position, test in enumerate(self.tests)}
        items[:] = sorted((item for item in items if item.nodeid in rank), key=lambda item: rank[item.nodeid])


def in_fork(act: Callable[[], int], *, source: Path, timeout: float, log: Path) -> int | None:
    """Return the exit code of `act`, run in a process that imports from `source`; None if it took too long."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setsid()
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(output, stream)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            os.chdir(ROOT)
            os.environ |= {
                "PYTHONPATH": str(source),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            sys.path.insert(0, str(source))
            code = act()
        finally:
            sys.stdout.flush()
            os._exit(code)
    try:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                pid = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid or done, signal.SIGKILL)  # and what the tests left behind
        if pid:
            os.waitpid(pid, 0)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A copy of the source, and the tests that judge its mutants."""

    source: Path
    clean: CleanRun

    def survives(self, mutant: Mutant) -> bool:
        """Return whether all tests pass with the mutant."""
        path = self.source / mutant.file
        original = path.read_bytes()
        path.write_bytes(mutant.applied_to(original))
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        try:
            near = self.clean.tests_of(mutant, self.source)
            others = sorted(self.clean.seconds.keys() - set(near), key=self.clean.seconds.__getitem__)
            return self._pass(near) and self._pass(others)
        finally:
            path.write_bytes(original)

    def _pass(self, tests: list[str]) -> bool:
        if not tests:
            return True
        timeout = 10 + 5 * sum(self.clean.seconds[test] for test in tests)
        files = sorted({test.partition("::")[0] for test in tests})

        def act() -> int:
            sys.dont_write_bytecode = True  # two mutants may have the same size and time
            return int(pytest.main([*PYTEST, *files], plugins=[FewExamples(), Only(tests)]))

        return in_fork(act, source=self.source, timeout=timeout, log=self.source.parent / "log") == 0


def clean_run(source: Path, tests: list[str]) -> CleanRun:
    """Run the tests on the code as it is, and load the libraries that they use, which saves time in every fork."""
    found, log = source.parent / "clean.json", source.parent / "log"

    def act() -> int:
        run = CleanRun()
        code = int(pytest.main([*PYTEST, *tests], plugins=[FewExamples(), run]))
        run.save(found, source)
        return code

    if in_fork(act, source=source, timeout=1800, log=log) != 0:
        sys.exit(f"The tests fail without a mutant:\n{log.read_text()[-3000:]}")
    clean = CleanRun.load(found)
    for module in clean.modules:
        if not module.startswith((*NOT_PRELOADED, "__")):
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


def start_worker(sources: Any, clean_of: Path) -> None:  # noqa: ANN401  (a queue of the multiprocessing context)
    """Take a copy of the source for each worker process."""
    source: Path = sources.get()
    calls = CleanRun.load(clean_of)
    first = clean_of.parent / "src"
    for test, found in calls.calls.items():
        calls.calls[test] = {(file.replace(str(first), str(source), 1), line) for file, line in found}
    BENCH.append(Bench(source=source, clean=calls))


def judge(mutant: Mutant) -> tuple[Mutant, bool]:
    """Return the mutant, and whether it survives."""
    return mutant, BENCH[0].survives(mutant)


def survivors(mutants: list[Mutant], tests: list[str], jobs: int) -> list[Mutant]:
    """Return the mutants with which all tests pass."""
    context = multiprocessing.get_context("fork")
    found: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        sources = [Path(folder, str(job), "src") for job in range(jobs)]
        for source in sources:
            shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
            compileall.compile_dir(source, quiet=2)
        clean_run(sources[0], tests)
        queue = context.Queue()
        for source in sources:
            queue.put(source)
        with context.Pool(jobs, start_worker, (queue, sources[0].parent / "clean.json")) as pool:
            for count, (mutant, survived) in enumerate(pool.imap_unordered(judge, mutants), start=1):
                if survived:
                    found.append(mutant)
                    print(mutant, flush=True)
                print(f"{count}/{len(mutants)}, {len(found)} survived", file=sys.stderr, end="\r")
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
    mutants = [mutant for mutant in mutants if given.match in str(mutant)]
    entries = tomllib.loads(EXPLAINED.read_text())["explained"] if EXPLAINED.exists() else []
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
