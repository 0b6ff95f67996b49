from pathlib import Path

import pytest

from tests.logs.support import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a log and returns its path."""

    def write_log(content: str | bytes, name: str = "log") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_log
