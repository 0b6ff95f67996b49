"""Sweeps on a real Ray cluster of three nodes, some of which are killed. `make ray` runs these."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenly import Scenario, sweep
from evenly.errors import InputError, PointFailedError
from evenly.sweeps.folder import shards
from evenly.sweeps.planning import make_plan
from evenly.sweeps.progress import Status
from tests.sweeps.support import rows_of, run_inline
from tests.sweeps.test_local_engine import DRIVER, KILLER, ROOT

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default")]

GRID: dict[str, Any] = {
    "policy": "threshold,jsq",
    "alpha": "0.8,0.9",
    "load": "1.5:9.5:0.1",
    "pools": 40,
    "horizon": 150,
}
BASE = Scenario(pools=40, load=1.5, horizon=150)
OVER = {name: GRID[name] for name in ("policy", "alpha", "load")}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes with one core each."""
    from ray import cluster_utils  # installed for `make ray` only

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    found = cluster_utils.Cluster(initialize_head=True, head_node_args=node)
    for _ in range(2):
        found.add_node(**{name: value for name, value in node.items() if name != "include_dashboard"})
    yield found
    found.shutdown()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of the grid, run in this process."""
    path = tmp_path_factory.mktemp("plain")
    run_inline(path, make_plan(GRID))
    return rows_of(path)


def test_a_killed_driver_is_resumed_with_the_same_bits(
    cluster: Any,  # noqa: ANN401
    tmp_path: Path,
    plain: list[dict[str, Any]],
) -> None:
    words = [word for name, value in GRID.items() for word in (f"--{name}", str(value))]
    words += ["--out", str(tmp_path), "--engine", "ray", "--ray-address", cluster.address]
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, "sweep", *words], cwd=ROOT)
    try:
        deadline = time.monotonic() + 120
        while not shards(tmp_path) and driver.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    before = len(rows_of(tmp_path))
    assert before > 0
    result = sweep(BASE, over=OVER, out=tmp_path, engine="ray", ray_address=cluster.address)
    assert result.status is not None
    assert (result.status.reused, result.status.done) == (before, len(plain) - before)
    assert rows_of(tmp_path) == plain


def test_a_killed_worker_is_replaced_and_our_errors_are_not_tried_again(
    cluster: Any,  # noqa: ANN401
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The policy kills its process once. Another one fails, and counts how often it was made to."""
    (tmp_path / "killer.py").write_text(KILLER.format(flag=str(tmp_path / "killed"), mark="touch"))
    (tmp_path / "failing.py").write_text(
        "from pathlib import Path\nfrom evenly.core import JoinShortestQueue\n"
        "class Failing(JoinShortestQueue):\n    def arrive(self, choose):\n"
        f"        with Path({str(tmp_path / 'tries')!r}).open('a') as file:\n            file.write('x')\n"
        "        raise ValueError('always')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    base = Scenario(policy="jsq", pools=2, load=1.5, horizon=2)
    over = {"policy": "killer:Killer,failing:Failing,jsq"}
    result = sweep(base, over=over, engine="ray", ray_address=cluster.address)
    assert (tmp_path / "killed").exists()
    assert (tmp_path / "tries").read_text() == "x"
    rows = {row["policy"]: row for row in result.rows().iter_rows(named=True)}
    assert rows["killer:Killer"]["error"] is None
    assert "always" in rows["failing:Failing"]["error"]
    with pytest.raises(PointFailedError, match="failing:Failing"):
        sweep(base, over=over, engine="ray", ray_address=cluster.address, fail_fast=True)


def test_a_killed_node_loses_nothing(cluster: Any, tmp_path: Path, plain: list[dict[str, Any]]) -> None:  # noqa: ANN401
    nodes = list(cluster.worker_nodes)

    def kill_a_node(status: Status) -> None:
        if status.done and nodes:
            cluster.remove_node(nodes.pop(), allow_graceful=False)
            nodes.clear()

    result = sweep(BASE, over=OVER, out=tmp_path, engine="ray", ray_address=cluster.address, progress=kill_a_node)
    assert not nodes
    assert result.status is not None
    assert (result.status.done, result.status.failed) == (len(plain), 0)
    assert rows_of(tmp_path) == plain


def test_a_cluster_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"Cannot reach a Ray cluster at 127\.0\.0\.1:1: connection refused"):
        sweep(BASE, over={"load": [1.5]}, engine="ray", ray_address="127.0.0.1:1")
