"""`wrk` as the client: it takes a few percent of a core, so its own delays do not distort those of the server."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from evenly.live.addresses import Address

CONNECTIONS = 64
_REPORT = """
function done(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status
  print(string.format('\\n{"answered": %d, "failed": %d, "seconds": %f, "p50": %f, "p99": %f}',
    summary.requests, failed, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""
_DELAY = "function delay() return math.random({}, {}) end"


@dataclass(frozen=True)
class Answers:
    """The result of a run: number of answers, duration, and latencies in milliseconds."""

    answered: int
    failed: int
    seconds: float
    p50: float
    p99: float

    def at(self, percent: int) -> float:
        """Return the latency at the 50th or the 99th percentile."""
        return {50: self.p50, 99: self.p99}[percent]


def program() -> str | None:
    """Return the path of `wrk`, or None if it is not installed."""
    return shutil.which("wrk")


def requests(wrk: str, address: Address, seconds: float, delays: tuple[int, int] | None = None) -> Answers:
    """Send requests over the connections for a whole number of seconds, at least one.

    With `delays`, each connection waits before each request for a random time between these milliseconds.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_REPORT + (_DELAY.format(*delays) if delays else ""))
        script.flush()
        options = ["-c", str(CONNECTIONS), "-t", "1", "-d", f"{max(round(seconds), 1)}s", "-s", script.name]
        command = [wrk, *options, f"http://{address}/"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    got = Answers(**json.loads(said.splitlines()[-1]))
    if got.failed:
        raise RuntimeError(f"wrk reports failures: {said}")
    return got
