"""Make the site independent of the network.

Search runs in a worker, and browsers start none for a page that was opened from disk. Zensical works around this
with a script that it loads from a public server. Our own script replaces it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

REMOTE = re.compile(r"https://[^\"']*/iframe-worker/shim")
LOCAL = "assets/file-worker.js"


def make_self_contained(site: Path) -> None:
    """Replace the remote script by the local one on every page."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        local = os.path.relpath(site / LOCAL, page.parent)
        page.write_text(REMOTE.sub(local, text), encoding="utf-8")
