"""Run schedules of faults.

python -m tests.faults --schedules 2000 --first-seed 1 --jobs 2    many, both modes in turn
python -m tests.faults --seed 17 --mode safety                     one, with every event
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from evenly.errors import InputError
from evenly.inputs import whole_number
from tests.faults.network.many import Tally, mode_of, run_many
from tests.faults.network.run import MODES, explain, run_schedule
from tests.faults.network.system import Peers


def main(arguments: list[str] | None = None, peers: Peers | None = None) -> int:
    """Parse the arguments and run; return 1 if a schedule failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Run schedules of faults.")
    parser.add_argument("--seed", type=int, help="Run this schedule only, and print every event.")
    parser.add_argument("--mode", choices=MODES, help="What to check (default: both modes, in turn).")
    parser.add_argument("--schedules", type=int, default=2000, help="Number of schedules (default: 2000).")
    parser.add_argument("--first-seed", type=int, default=1, help="Seed of the first one (default: 1).")
    parser.add_argument("--jobs", type=int, default=1, help="Number of processes (default: 1).")
    given = parser.parse_args(arguments)
    try:
        if given.seed is not None:
            return _show_one(given.seed, given.mode, peers)
        first = whole_number("--first-seed", given.first_seed, 0, 2**62)
        schedules = whole_number("--schedules", given.schedules, 1, 2**40)
        jobs = whole_number("--jobs", given.jobs, 1, 1024)
    except InputError as error:
        parser.error(str(error))
    return _run_all(run_many(first, schedules, jobs=jobs, mode=given.mode, peers=peers), peers)


def _show_one(seed: int, mode: str | None, peers: Peers | None) -> int:
    outcome = run_schedule(seed, mode or mode_of(seed), peers=peers, tracing=True)
    print(outcome.setup, *outcome.trace, sep="\n")
    print(f"{outcome.mode}, {outcome.events} events: {outcome.failure or 'everything held'}")
    return int(outcome.failure is not None)


def _run_all(tallies: Iterable[Tally], peers: Peers | None) -> int:
    total = Tally()
    for tally in tallies:
        for failure in tally.failures:
            print(explain(failure, peers=peers), f"Commit: {commit()}", sep="\n", flush=True)
        total.add(tally)
    print(total)
    return int(bool(total.failures))


def commit() -> str:
    """Return the commit of the checkout that this runs from, if there is one."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40"]
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return "unknown"


if __name__ == "__main__":
    sys.exit(main())
