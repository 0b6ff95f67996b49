from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.stores import KINDS, StoreServer


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    """A store that the tests of a module share: each uses a fleet of its own."""
    with StoreServer(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


@pytest.fixture(params=KINDS)
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreServer]:
    """A store that the test may kill."""
    with StoreServer(request.param, tmp_path) as server:
        yield server
