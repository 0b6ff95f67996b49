"""`python -m bench`: measure and print a table. With --write, also update the page in the documentation."""

from __future__ import annotations

import argparse
import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from bench import (
    dashboards,
    fleet_balance,
    fleet_recovery,
    fleet_scale,
    fleet_speed,
    late_messages,
    live_balance,
    live_memory,
    live_scrapes,
    live_speed,
    measure,
    own_policy,
    page,
    playground,
    predictions,
    records,
    sessions,
    siege,
    slow_corners,
    sweep_gpu,
    sweeps,
)
from bench.measure import Figure


def machine() -> str:
    """Describe the machine: its processor, its load average and the versions that matter."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    import numba  # noqa: PLC0415

    versions = f"Python {platform.python_version()}, Numba {numba.__version__}"
    return f"{model}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start, {versions}"


def row(figure: Figure) -> str:
    """Return a row of the table."""
    sign = ">=" if figure.at_least else "<="
    goal = "" if figure.goal is None else f"{sign} {figure.goal:g}"
    met = {True: "yes", False: "**no**", None: ""}[figure.met]
    measured = figure.unit if math.isnan(figure.value) else f"{_short(figure.value)} {figure.unit}".rstrip()
    return f"| {figure.what} | {measured} | {goal} | {met} |"


def _short(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < math.inf else f"{value:.3g}"


def simulator(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the figures of everything that runs without a network, as they are measured."""
    yield from measure.against_simpy(rounds, scale)
    yield from measure.against_cpp(rounds, scale)
    yield from measure.against_size(rounds, scale)
    yield from measure.on_two_cores(rounds, scale)
    yield from predictions.predictions(rounds)
    yield from measure.start_up(max(rounds // 3, 1))


def sections(rounds: int, scale: float) -> dict[str, Iterator[Figure]]:
    """Return the figures of each section as iterators, which measure when they are consumed."""
    return {
        "simulator": simulator(rounds, scale),
        "records": records.records(rounds, scale),
        "slow-corners": slow_corners.slow_corners(rounds, scale),
        "late-messages": late_messages.late_messages(rounds, scale),
        "own-policy": own_policy.own_policy(rounds, scale),
        "sessions": sessions.sessions(rounds, scale),
        "playground": playground.playground(scale),
        "sweeps": sweeps.sweeps(rounds, scale),
        "sweeps-gpu": sweep_gpu.on_gpu(),
        "live-balance": live_balance.evenness(scale),
        "live-speed": live_speed.speed(rounds, scale),
        "live-scrapes": live_scrapes.scrapes(rounds, scale),
        "live-dashboards": dashboards.dashboards(rounds, scale),
        "live-memory": live_memory.memory(scale),
        "siege": siege.siege(scale),
        "fleet-balance": fleet_balance.evenness(scale),
        "fleet-speed": fleet_speed.speed(rounds, scale),
        "fleet-scale": fleet_scale.scale_up(scale),
        "fleet-recovery": fleet_recovery.recovery(rounds, scale),
    }


def printed(table: Iterator[Figure]) -> list[str]:
    """Print the rows of a table as they are measured, and return them."""
    rows = []
    print(page.TABLE, end="")
    for figure in table:
        rows.append(row(figure))
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure and print. With --write, also write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each metric (default: 15)")
    parser.add_argument(
        "--scale", type=float, default=5.0, help="relative length of each measurement (default: 5)"
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="also write the page, such as docs/benchmarks.md"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=page.MEASURED,
        metavar="SECTION",
        default=list(page.MEASURED),
        help="measure only these sections, and keep the rest of the page: %(choices)s",
    )
    options = parser.parse_args()
    where = machine()
    tables = sections(options.rounds, options.scale)
    rows = {name: printed(tables[name]) for name in options.only}
    made = {name: page.section(name, where, options.rounds, found) for name, found in rows.items() if found}
    if options.write:
        old = options.write.read_text(encoding="utf-8") if options.write.exists() else ""
        options.write.write_text(page.renewed(old, made), encoding="utf-8")


if __name__ == "__main__":
    main()
