"""Random exploration, for as long as you let it: `make fuzz`, or one part of it.

python -m tests.fuzz commands --count 500 --seed 1     the command line, with hostile values
python -m tests.fuzz explore --minutes 30              that, schedules of faults, property tests; fresh seeds
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection

from tests.faults.__main__ import commit
from tests.fuzz.attacks import attacks
from tests.fuzz.forks import Outcome, run_once

COMMANDS_PER_ROUND = 20_000
SCHEDULES_PER_ROUND = 100_000
_SHOWN = 20  # failures


def attack(count: int, seed: int, chosen: Collection[int], parts: int) -> int:
    """Run the chosen ones of `parts` equal parts of `count` attacks, and return the number of failures."""
    _warm_up()
    failures: list[Outcome] = []
    codes: Counter[int] = Counter()
    slowest = fattest = 0.0
    for number, arguments in enumerate(itertools.islice(attacks(seed), count)):
        if number % parts not in chosen:
            continue
        outcome = run_once(arguments)
        codes[outcome.code] += 1
        slowest, fattest = max(slowest, outcome.seconds), max(fattest, outcome.memory)
        if outcome.verdict:
            failures.append(outcome)
            if len(failures) <= _SHOWN:
                print(_report(outcome), flush=True)
    print(
        f"{codes.total()} invocations, {len(failures)} failures; exit codes {dict(sorted(codes.items()))}; "
        f"at most {slowest:.1f} s of processor time and {fattest / 1e6:.0f} MB"
    )
    return len(failures)


def _report(outcome: Outcome) -> str:
    words = [word if len(word) < 200 else f"{word[:80]}...({len(word)} characters)" for word in outcome.arguments]
    lines = [
        f"{outcome.verdict}: evenly {shlex.join(words)}",
        f"exit code {outcome.code}, {outcome.seconds:.1f} s, {outcome.memory / 1e6:.0f} MB",
        *outcome.err.strip()[-600:].splitlines(),
    ]
    return "\n    ".join(lines).encode("utf-8", "backslashreplace").decode()


def _warm_up() -> None:
    """Import and load everything once, so that forks start with it."""
    import importlib
    import pkgutil

    import evenly
    from evenly.cli.main import main

    for module in pkgutil.walk_packages(evenly.__path__, "evenly."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    stdout, sys.stdout = sys.stdout, open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for command in (
        "compare --pools 3 --load 1 --horizon 1",
        "exact --pools 2 --load 0.5",
        "diffusion --load 2.5",
    ):
        main(command.split())
    sys.stdout.close()
    sys.stdout = stdout


def explore(minutes: float) -> int:
    """Run rounds with fresh seeds until the time is up or something fails."""
    end = time.monotonic() + 60 * minutes
    cores = len(os.sched_getaffinity(0))
    while True:
        seed = random.SystemRandom().randrange(2**31)
        print(f"seed {seed}, commit {commit()}", flush=True)
        command = [sys.executable, "-m", "tests.fuzz", "commands", "--seed", str(seed)]
        command += ["--count", str(COMMANDS_PER_ROUND), "--parts", str(cores)]
        attackers = [subprocess.Popen([*command, "--part", str(part)]) for part in range(cores)]
        failed = [attacker.wait() for attacker in attackers]
        # Rounds do not share schedules: they are fewer than 2**20.
        schedules = [sys.executable, "-m", "tests.faults", "--first-seed", str(seed << 20)]
        schedules += ["--schedules", str(SCHEDULES_PER_ROUND), "--jobs", str(cores)]
        failed.append(subprocess.run(schedules, check=False).returncode)
        tests = [sys.executable, "-m", "pytest", "-m", "hypothesis", "--hypothesis-profile=explore"]
        tests += [f"--hypothesis-seed={seed}", "--numprocesses=auto", "--dist=worksteal"]
        if subprocess.run(tests, check=False).returncode or any(failed):
            return 1
        if time.monotonic() > end:
            return 0


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    modes = parser.add_subparsers(dest="mode", required=True)
    commands = modes.add_parser("commands")
    commands.add_argument("--count", type=int, default=500)
    commands.add_argument("--seed", type=int, default=1)
    commands.add_argument("--part", type=int, nargs="+", default=[0])
    commands.add_argument("--parts", type=int, default=1)
    exploring = modes.add_parser("explore")
    exploring.add_argument("--minutes", type=float, default=30)
    given = parser.parse_args()
    if given.mode == "explore":
        return explore(given.minutes)
    return int(attack(given.count, given.seed, given.part, given.parts) > 0)


if __name__ == "__main__":
    sys.exit(main())
