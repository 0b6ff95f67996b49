"""The playground as a part of the site: the files that `evenly play --export` writes."""

from __future__ import annotations

import sys
from pathlib import Path


def write_playground(source: Path, folder: Path) -> None:
    """Write the page of the package in `source`, which needs no installed libraries, to a folder."""
    sys.path.insert(0, str(source))
    from evenly.web.assets import Page  # noqa: PLC0415
    from evenly.web.bundle import exported  # noqa: PLC0415

    for path, body in exported(Page("playground")).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
