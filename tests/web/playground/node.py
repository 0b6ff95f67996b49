"""Run the playground's modules in Node, without a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def in_node(script: str, question: object) -> Any:  # noqa: ANN401  (whatever the script prints)
    """Run a script of this folder with a JSON object on its input, and return the JSON object that it prints."""
    done = subprocess.run(
        ["node", str(HERE / script)], input=json.dumps(question), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
