"""`python -m chaos`: attack a real gateway and break its parts, in random order, with innocent sessions open.

The exit code is 0 if every step passed, 1 if one failed, and 2 for bad arguments or if nothing can be started.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence
from contextlib import aclosing

from chaos import report
from chaos.bounds import FILES_PER_SESSION, files_after
from chaos.field import Size
from chaos.gateway import GatewayError
from chaos.siege import Outcome, siege
from chaos.steps import Step, all_steps
from evenly.errors import InputError
from evenly.live.envoy.process import find_envoy
from evenly.live.processes import raise_fd_limit

_OWN_FILES = 500  # of this process, besides innocents and attackers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the siege; return the exit code."""
    known = all_steps()
    options = _parser(list(known)).parse_args(arguments)
    if options.list:
        for step in known.values():
            print(f"{step.name:28} {step.about}")
        return 0
    size = Size(pools=options.pools, innocents=options.innocents, files=options.files)
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    steps = [known[name] for name in options.only or known]
    outcomes: list[Outcome] = []
    try:
        _check(size)
        code = asyncio.run(_run(steps, seed, options.minutes, size, outcomes, quiet=options.json))
    except (InputError, GatewayError, OSError) as error:
        print(f"chaos: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("chaos: interrupted", file=sys.stderr)
        code = 130
    print(report.as_json(outcomes, seed, size) if options.json else report.verdict(outcomes, seed))
    return code


async def _run(
    steps: Sequence[Step], seed: int, minutes: float, size: Size, outcomes: list[Outcome], *, quiet: bool
) -> int:
    """Collect the outcomes and print each at once: on standard error if standard output is for JSON."""
    out = sys.stderr if quiet else sys.stdout
    print(
        f"seed {seed}: {size.pools} pools, {size.innocents} innocents, {size.files} files per process; "
        "memory and files are those of Envoy/picker/supervisor",
        file=out,
        flush=True,
    )
    async with aclosing(siege(steps, seed=seed, minutes=minutes, size=size)) as running:
        async for outcome in running:
            outcomes.append(outcome)
            print(report.line(outcome), file=out, flush=True)
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _check(size: Size) -> None:
    """Reject what cannot work, before anything is started."""
    find_envoy()
    least = 2 * files_after(size.innocents)
    if size.files < least:
        raise InputError(f"--files must be at least {least} for {size.innocents} innocents, not {size.files}.")
    own = FILES_PER_SESSION * size.innocents + size.files + _OWN_FILES
    if (most := raise_fd_limit()) < own:
        raise InputError(
            f"This process needs {own} open files, and the limit is {most}: lower --files or raise it."
        )


def _parser(names: list[str]) -> argparse.ArgumentParser:
    size = Size()
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="order and parameters of the steps (default: a random one)")
    parser.add_argument(
        "--minutes", type=float, default=10, help="run rounds this long, at least one (default: 10)"
    )
    parser.add_argument("--only", nargs="+", choices=names, metavar="STEP", help="run these steps only")
    parser.add_argument("--list", action="store_true", help="list the steps and exit")
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    parser.add_argument("--pools", type=_positive, default=size.pools, help=f"(default: {size.pools})")
    parser.add_argument("--innocents", type=_positive, default=size.innocents, help=f"(default: {size.innocents})")
    files = f"limit on open files of each process of the gateway (default: {size.files})"
    parser.add_argument("--files", type=_positive, default=size.files, help=files)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return number


if __name__ == "__main__":
    sys.exit(main())
