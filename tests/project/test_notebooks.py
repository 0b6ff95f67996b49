"""The notebooks run from top to bottom and reproduce their saved outputs, whose numbers come from fixed seeds."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.full


EXAMPLES = Path(__file__).parents[2] / "examples"


def texts(notebook: Any) -> list[str]:  # noqa: ANN401  (nbformat is untyped)
    """Return each output as text, and "picture" for pictures."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            found.append("picture" if "image/png" in data else output.get("text") or data.get("text/plain", ""))
    return found


@pytest.mark.parametrize("name", ["researcher", "operator"])
def test_a_notebook_reproduces_its_outputs(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    shown = texts(notebook)
    assert shown.count("picture") >= 2
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert texts(notebook) == shown
    assert list(tmp_path.iterdir()) == []
