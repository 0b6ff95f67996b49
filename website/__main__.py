"""`python -m website`: build the documentation site, and fail on a broken link."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from website.checks import problems_of
from website.finish import make_self_contained
from website.playground import write_playground
from website.stage import BrokenLinkError, stage

HERE = Path(__file__).parent
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def main() -> int:
    """Build the site into the folder --out, which is replaced. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m website", description="Build the documentation site.")
    parser.add_argument("--root", type=Path, default=HERE.parent, help="checkout to document (default: this one)")
    parser.add_argument("--out", type=Path, default=Path("site"), help="folder to write (default: site)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        try:
            stage(options.root.resolve(), work)
        except BrokenLinkError as error:
            print(error, file=sys.stderr)
            return 1
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}  # for website.griffe_extension
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            said = _COLOR.sub("", done.stderr)
            print(said.partition("Traceback")[0].rstrip() or said, file=sys.stderr)
            return 1
        make_self_contained(work / "site")
        write_playground(options.root.resolve() / "src", work / "site" / "playground")
        problems = problems_of(work / "site")
        if problems:
            print(*problems, sep="\n", file=sys.stderr)
            return 1
        shutil.rmtree(options.out, ignore_errors=True)
        shutil.copytree(work / "site", options.out)
    print(f"The site is ready: open {options.out / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
