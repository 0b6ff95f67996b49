"""The playground: events per second in Node and in a browser's worker, and the time that a frame takes."""

from __future__ import annotations

import json
import statistics
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from bench.measure import Figure
from evenly.live.addresses import Address
from evenly.live.listening import listening_socket
from evenly.web.assets import Page
from evenly.web.server import PageServer

CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
POOLS = 500
_WATCH = """
window.frames_ms = [];
window.frame_times = [];
const ask = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (work) => ask((now) => {
  const begin = performance.now();
  work(now);
  const spent = performance.now() - begin;
  const last = window.frame_times.length - 1;
  if (window.frame_times[last] === now) window.frames_ms[last] += spent;
  else { window.frame_times.push(now); window.frames_ms.push(spent); }
});
"""
_WORKER = """async ([until]) => {
  const address = new URL(document.documentElement.dataset.worker, document.baseURI);
  const worker = new Worker(address, { type: "module" });
  const ask = (request) => new Promise((resolve) => {
    worker.onmessage = (event) => resolve(event.data);
    worker.postMessage(request);
  });
  const spec = { policy: "threshold", threshold: 0, alpha: "0.92", choices: 2, exponential: false, initial: 5,
    seed: 1, pools: 500, load: 5.5, delay: 0 };
  await ask({ type: "start", specs: [spec], actions: [] });
  const first = await ask({ type: "advance", until: 5, milliseconds: Infinity });
  const begin = performance.now();
  const last = await ask({ type: "advance", until, milliseconds: Infinity });
  const events = last.lanes[0].averages.events - first.lanes[0].averages.events;
  worker.terminate();
  return (events / (performance.now() - begin)) * 1000;
}"""


@contextmanager
def served() -> Iterator[str]:
    """Serve the page as `evenly play` does."""
    with PageServer(Page("playground"), listening_socket(Address("127.0.0.1", 0))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.port}/"
        server.shutdown()


def playground(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are measured."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (of the development environment)

    script = Path(__file__).with_suffix(".mjs")
    done = subprocess.run(["node", str(script), str(scale)], capture_output=True, text=True, check=True)
    instant, late = json.loads(done.stdout)
    yield Figure(f"Node: events/s, {POOLS} pools, learning", instant, "", 1e5)
    yield Figure(f"Node: events/s, {POOLS} pools, learning, delay 0.05", late, "", 1e5)
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(_WATCH)
        page.goto(f"{address}#scene=sandbox&t=1")
        yield Figure(
            f"Chromium, worker: events/s, {POOLS} pools, learning, charts and checkpoints included",
            page.evaluate(_WORKER, [5 + 100 * scale]),
            "",
            1e5,
        )
        for lanes in (1, 4):
            policies = ",".join(["threshold:t0:a0.92", "jsq", "power-of-d:d2", "random"][:lanes])
            page.goto("about:blank")
            page.goto(f"{address}#scene=sandbox&pools={POOLS}&load=5.5&lanes={policies}&speed=1")
            page.wait_for_timeout(int(1000 + 1000 * scale))
            page.evaluate("() => { frames_ms.length = 0; frame_times.length = 0; }")
            page.wait_for_timeout(int(500 + 5500 * scale))
            spent, times = page.evaluate("() => [frames_ms, frame_times]")
            gaps = [later - earlier for earlier, later in pairwise(times)]
            what = f"{POOLS} pools, {lanes} {'policy' if lanes == 1 else 'policies'}"
            late = sorted(spent)[int(0.95 * len(spent))]
            yield Figure(f"{what}: our part of a frame, median", statistics.median(spent), "ms", 8, at_least=False)
            yield Figure(f"{what}: our part of a frame, 95 of 100 frames", late, "ms", 16.7, at_least=False)
            yield Figure(f"{what}: frames/s, median", 1000 / statistics.median(gaps), "", 59)
        browser.close()
