"""`python -m bench`: measure, print a table, and with --write keep it in the documentation."""

from __future__ import annotations

import argparse
import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from bench import live_balance, live_memory, live_speed, measure, predictions
from bench.measure import Figure

PAGE = """# Benchmarks

Measured side by side in one run, in turn, {rounds} rounds; a ratio is the median of the ratios within rounds. On a
busy machine a ratio holds where a time does not. The system is the paper's: 500 pools, load 10.5, learning
threshold with alpha 0.97.

- Machine: {machine}
- Command: `make bench`

| figure | measured | goal | met |
| --- | ---: | ---: | --- |
{rows}

The opponents are in `bench/`: `chain.cpp` is the same Markov chain with the same records, written by hand in
C++17 (`-O3 -march=native`, xoshiro256++, ziggurat); `simpy_model.py` is a straightforward SimPy model with a
process for each task, and fewer records. `python -m bench.opponents` checks that the two simulate the same
system. Without a C++ compiler its figures are missing. The fluid solver meets SciPy's own implicit solver on the
one stretch that a general solver can take, before the first event.

## The live balancer

Real processes on the same machine: Envoy, the picker, pools and clients share its cores.

### How even

20 pools, load 5.5, WebSocket sessions of 4 s on average. Every balancer gets the same visits at the same time,
onto pools of its own; several gateways get them at random. The spread is the time average of the standard
deviation of the sessions over the pools, as the clients saw them; ± is a 95 % interval from batches. JSQ is the
ideal: the same visits replayed without a network through a balancer that knows everything at once. HAProxy's
leastconn with one gateway knows everything too, so what it lacks to JSQ is what the delays of the network and the
machine cost.

| figure | measured | goal | met |
| --- | ---: | ---: | --- |
{balance_rows}

Rivals are as they come: Envoy's least_request compares two pools, chosen at random. Their four gateways share a
process, but neither counts nor clusters (`bench/rivals.py`).

### How fast

One session is one short request, so that nothing but the start of sessions costs; `wrk` sends them over 64
connections, and pools are listeners of the same Envoy that answer at once. Processor time is that of the picker's
process, kernel included. The naive picker is a straightforward one on `grpc.aio` with answers made once
(`bench/rivals.py`); it counts nothing. Straight at the picker means without Envoy: a client tells it of sessions
with the messages that Envoy would send. Times at a constant rate are those of a Python client that does not wait
for answers, with and without the picker in turn.

| figure | measured | goal | met |
| --- | ---: | ---: | --- |
{speed_rows}

### How much memory

Quiet WebSocket sessions through Envoy, against the same processes before the first one.

| figure | measured | goal | met |
| --- | ---: | ---: | --- |
{memory_rows}
"""


def machine() -> str:
    """The processor, what else it had to do, and the versions that matter."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    import numba  # noqa: PLC0415

    versions = f"Python {platform.python_version()}, Numba {numba.__version__}"
    return f"{model}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at first, {versions}"


def row(figure: Figure) -> str:
    """A line of the table."""
    sign = ">=" if figure.at_least else "<="
    goal = "" if figure.goal is None else f"{sign} {figure.goal:g}"
    met = {True: "yes", False: "**no**", None: ""}[figure.met]
    measured = figure.unit if math.isnan(figure.value) else f"{_short(figure.value)} {figure.unit}".rstrip()
    return f"| {figure.what} | {measured} | {goal} | {met} |"


def _short(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < math.inf else f"{value:.3g}"


def figures(rounds: int, scale: float) -> Iterator[Figure]:
    """All the figures, as they come."""
    yield from measure.against_simpy(rounds, scale)
    yield from measure.against_cpp(rounds, scale)
    yield from measure.against_size(rounds, scale)
    yield from measure.on_two_cores(rounds, scale)
    yield from predictions.predictions(rounds)
    yield from measure.start_up(max(rounds // 3, 1))


def sections(rounds: int, scale: float) -> dict[str, Iterator[Figure]]:
    """The tables of the page, none of them measured yet."""
    return {
        "rows": figures(rounds, scale),
        "balance_rows": live_balance.evenness(scale),
        "speed_rows": live_speed.speed(rounds, scale),
        "memory_rows": live_memory.memory(scale),
    }


def printed(table: Iterator[Figure]) -> str:
    """Print the lines of a table as they are measured, and return them."""
    rows = []
    print("| figure | measured | goal | met |\n| --- | ---: | ---: | --- |")
    for figure in table:
        rows.append(row(figure))
        print(rows[-1], flush=True)
    return "\n".join(rows)


def main() -> None:
    """Measure and print; write the page when asked."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each figure (default: 15)")
    parser.add_argument("--scale", type=float, default=5.0, help="length of each measurement (default: 5)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page, docs/benchmarks.md say")
    options = parser.parse_args()
    where = machine()
    tables = {name: printed(table) for name, table in sections(options.rounds, options.scale).items()}
    if options.write:
        page = PAGE.format(rounds=options.rounds, machine=where, **tables)
        options.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
