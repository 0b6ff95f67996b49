"""Notebooks as pages: the cells and the outputs that are stored with them. Nothing is run."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def write_notebook(notebook: Path, folder: Path) -> None:
    """Write the notebook as a Markdown page to `folder`, with its pictures beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    parts: list[str] = []
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif source:
            parts.append(_fenced(source, "python"))
            parts.extend(_outputs(cell["outputs"], folder, f"{notebook.stem}-{number}"))
    (folder / f"{notebook.stem}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _outputs(outputs: list[dict[str, Any]], folder: Path, stem: str) -> Iterator[str]:
    for number, output in enumerate(outputs):
        data = output.get("data", {})
        if "image/png" in data:
            picture = folder / f"{stem}-{number}.png"
            picture.write_bytes(base64.b64decode("".join(data["image/png"])))
            yield f"![Output of the cell above]({picture.name})"
        elif "text/html" in data:
            html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
            html = re.sub(r"<table[^>]*>", "<table>", html)  # so that the theme draws it
            lines = [line.strip() for line in html.splitlines() if line.strip()]  # a blank line would end the HTML
            yield "\n".join(['<div class="output">', *lines, "</div>"])
        else:
            yield _fenced("".join(output.get("text", data.get("text/plain", ""))).rstrip(), "text")


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}\n```"
