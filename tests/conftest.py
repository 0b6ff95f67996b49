"""What all tests share: Hypothesis profiles, signals as in a terminal, skips that are counted, long tests first.

`make test` must not fail by chance, and `make fuzz` must find what it missed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Generator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

from tests.needs import REASON

Report = pytest.TestReport | pytest.CollectReport
_OF_THE_CALLER = {"COLUMNS", "LINES", "TERMINAL_WIDTH", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS"}

# The same examples every time, whatever the machine is doing.
settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # measures time, so it depends on the machine
)
# Other examples every time; a failure prints how to reproduce it and is tried first in the next run.
settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

# The colors, widths, proxies and secrets of the caller do not reach the tests.
for _name in list(os.environ):
    if _name in _OF_THE_CALLER or _name.startswith("EVENLY_") or _name.lower().endswith("_proxy"):
        del os.environ[_name]

# Nothing is read from the user's home, and nothing is written to it. Gateways of other runs have left no state.
_HOME = Path(sys.prefix) / "home"
_STATE = TemporaryDirectory(prefix="evenly-state-")
os.environ |= {
    "MPLCONFIGDIR": str(_HOME / "matplotlib"),
    "IPYTHONDIR": str(_HOME / "ipython"),
    "CURL_HOME": str(_HOME),
    "XDG_STATE_HOME": _STATE.name,
}
os.environ.pop("STATE_DIRECTORY", None)

# A job in the background of a script starts with SIGINT ignored, and so would every process of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # what is not selected has gone by then
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start each process with its share of the long tests.

    xdist gives each process a block of the list, in order, and lets idle ones steal from the ends of the others'.
    A long test at the end of a block would leave the other processes without work.
    """
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    long = [item for item in items if item.get_closest_marker("long")]
    rest = iter([item for item in items if not item.get_closest_marker("long")])
    ordered: list[pytest.Item] = []
    for number in range(processes):
        own = long[number::processes]
        end = len(items) * (number + 1) // processes
        ordered += [*own, *islice(rest, max(end - len(ordered) - len(own), 0))]
    items[:] = [*ordered, *rest]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Report, Report]:
    """Fail what would be skipped, if REQUIRE_ALL is set: then every program must be installed."""
    report = yield
    if report.skipped and os.environ.get("REQUIRE_ALL", "0") not in {"", "0"}:
        report.outcome = "failed"
    return report


pytest_make_collect_report = pytest_runtest_makereport  # for a module that would be skipped


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the missing programs, with the number of tests that each would have run."""
    reasons = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    missing = Counter(reason.partition(REASON)[2] for reason in reasons if REASON in reason)
    if missing:
        counted = ", ".join(f"{program} ({count})" for program, count in sorted(missing.items()))
        terminalreporter.line(f"Skipped for missing programs, which `make tools` installs: {counted}.")
