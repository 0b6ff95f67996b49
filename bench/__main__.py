"""`python -m bench`: measure, print a table, and with --write keep it in the documentation."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from pathlib import Path

from bench import measure, predictions
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
"""


def machine() -> str:
    """The processor and the versions that matter."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    import numba  # noqa: PLC0415

    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, Numba {numba.__version__}"


def row(figure: Figure) -> str:
    """A line of the table."""
    sign = ">=" if figure.at_least else "<="
    goal = "" if figure.goal is None else f"{sign} {figure.goal:g}"
    met = {True: "yes", False: "**no**", None: ""}[figure.met]
    return f"| {figure.what} | {figure.value:.3g} {figure.unit} | {goal} | {met} |"


def figures(rounds: int, scale: float) -> Iterator[Figure]:
    """All the figures, as they come."""
    yield from measure.against_simpy(rounds, scale)
    yield from measure.against_cpp(rounds, scale)
    yield from measure.against_size(rounds, scale)
    yield from measure.on_two_cores(rounds, scale)
    yield from predictions.predictions(rounds)
    yield from measure.start_up(max(rounds // 3, 1))


def main() -> None:
    """Measure and print; write the page when asked."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each figure (default: 15)")
    parser.add_argument("--scale", type=float, default=5.0, help="length of each measurement (default: 5)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page, docs/benchmarks.md say")
    options = parser.parse_args()
    rows = []
    print("| figure | measured | goal | met |\n| --- | ---: | ---: | --- |")
    for figure in figures(options.rounds, options.scale):
        rows.append(row(figure))
        print(rows[-1], flush=True)
    if options.write:
        page = PAGE.format(rounds=options.rounds, machine=machine(), rows="\n".join(rows))
        options.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
