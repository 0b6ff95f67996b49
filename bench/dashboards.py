"""What dashboards cost: the picker's time with and without them, the wait of picks, and frames in a browser."""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bench import straight
from bench.live_scrapes import pickers
from bench.measure import Figure
from evenly.live.addresses import Address
from evenly.live.wire import frames

POOLS = 1000
HELD = 5500  # open sessions
PACE = 1000.0  # session starts per second, and as many ends: most pools change between two messages
READERS = 0, 1, 10
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
MAX_SHARE = 1.0  # percent of a core
FRAME_MS = 1000 / 60
_FEWEST = 100  # frames
MAX_SCRIPT_MS = 8.0  # half of a frame is for the browser
# Notes how long each frame's script takes, and when frames come.
NOTE_FRAMES = """
window.frameWork = [];
window.frameTimes = [];
const request = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => request((now) => {
    const began = performance.now();
    draw(now);
    window.frameWork.push(performance.now() - began);
});
const tick = (now) => { window.frameTimes.push(now); request(tick); };
request(tick);
"""


class HeldSessions(straight.Sessions):
    """Sessions of which the last `HELD` stay open."""

    def __init__(self) -> None:
        super().__init__()
        self._open: deque[bytes] = deque()

    def _answered(self, name: bytes, answer: bytes) -> bytes:
        if name in self._turns:
            return super()._answered(name, answer)
        self._open.append(name)
        if len(self._open) <= HELD:
            return b""
        return frames.frame(frames.RST_STREAM, 0, self._open.popleft(), frames.WORD.pack(8))


async def read_stream(admin: Address) -> None:
    """Read the stream of a dashboard until cancelled."""
    reader, writer = await asyncio.open_connection(*admin)
    try:
        head = f"GET /dashboard/events HTTP/1.1\r\nHost: {admin}\r\nX-Evenly-Dashboard: 1\r\n\r\n"
        writer.write(head.encode())
        if not (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 "):
            raise RuntimeError("the picker has no stream")
        while await reader.read(2**16):
            pass
    finally:
        writer.close()


def run_seconds(process: int) -> float:
    """Return the time that a process has run on a core, in nanoseconds' resolution."""
    tasks = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@dataclass
class Load:
    """One connection that starts sessions at a constant rate, and holds the last of them open."""

    picks: Address
    sessions: HeldSessions = field(default_factory=HeldSessions)

    async def open(self) -> asyncio.Transport:
        """Connect, and open the first sessions."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: self.sessions, self.picks.host, self.picks.port)
        for _ in range(HELD):
            self.sessions.send()
        while len(self.sessions.times) < HELD:
            await asyncio.sleep(0.01)
        return transport

    async def waits(self, seconds: float) -> list[float]:
        """Return how long the picks of this time took."""
        self.sessions.times = []
        return await straight.at_pace(PACE, seconds, self.sessions.send, self.sessions.times)


async def measured(process: int, admin: Address, load: Load, readers: int, seconds: float) -> tuple[float, float]:
    """Return the picker's share of a core in percent, and the p99 of a pick in milliseconds."""
    reading = [asyncio.create_task(read_stream(admin)) for _ in range(readers)]
    await asyncio.sleep(0.6)  # everyone has the first message, which is long
    before, began = run_seconds(process), time.perf_counter()
    waits = await load.waits(seconds)
    share = 100 * (run_seconds(process) - before) / (time.perf_counter() - began)
    for each in reading:
        if each.done():
            each.result()
        each.cancel()
    await asyncio.gather(*reading, return_exceptions=True)
    return share, 1000 * statistics.quantiles(waits, n=100)[-1]


async def side_by_side(
    process: int, picks: Address, admin: Address, rounds: int, seconds: float
) -> dict[int, list[tuple[float, float]]]:
    """Measure with each number of readers in turn, in each round."""
    load = Load(picks)
    transport = await load.open()
    found: dict[int, list[tuple[float, float]]] = {readers: [] for readers in READERS}
    for _ in range(rounds):
        for readers in READERS:
            found[readers].append(await measured(process, admin, load, readers, seconds))
    with suppress(OSError):
        transport.close()
    return found


async def _keep_busy(picks: Address, done: threading.Event) -> None:
    load = Load(picks)
    transport = await load.open()
    while not done.is_set():
        await load.waits(0.5)
    transport.close()


def in_a_browser(picks: Address, admin: Address, seconds: float) -> tuple[list[float], list[float]]:
    """Return the milliseconds between frames, and those of each frame's script, while sessions start and end."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (a browser is not always there)

    done = threading.Event()
    busy = threading.Thread(target=lambda: asyncio.run(_keep_busy(picks, done)))
    busy.start()
    with ExitStack() as stack:
        stack.callback(busy.join)
        stack.callback(done.set)
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.add_init_script(NOTE_FRAMES)
        page.goto(f"http://{admin}/")
        page.locator("#status[data-status=live]").wait_for()
        page.wait_for_timeout(1000 * seconds)
        while page.evaluate("Math.min(frameWork.length, frameTimes.length)") < _FEWEST:
            page.wait_for_timeout(100)
        times: list[float] = page.evaluate("window.frameTimes.slice(30)")
        work: list[float] = page.evaluate("window.frameWork.slice(5)")
        browser.close()
    return [after - before for before, after in pairwise(times)], work


def dashboards(rounds: int, scale: float) -> Iterator[Figure]:
    """Yield the cost of dashboards at 1,000 pools, next to the same picker without them."""
    seconds = max(0.4 * scale, 0.5)
    with pickers((POOLS,)) as found:
        [(process, picks, admin)] = found.values()
        time.sleep(1)  # the first seconds of a process are not typical
        measured = asyncio.run(side_by_side(process.number, picks, admin, rounds, seconds))
        none = [share for share, _ in measured[0]]
        for readers, pairs in measured.items():
            name = "no dashboard" if readers == 0 else f"{readers} open dashboard{'s' if readers > 1 else ''}"
            share = statistics.median(share for share, _ in pairs)
            yield Figure(f"{name}: picker, share of a core", share, "%")
            if readers:
                more = statistics.median(share - base for (share, _), base in zip(pairs, none, strict=True))
                yield Figure(
                    f"{name}: of that for dashboards", more, "%", MAX_SHARE if readers == 1 else None, False
                )
            yield Figure(f"{name}: pick p99, calmest round", min(wait for _, wait in pairs), "ms")
        if CHROMIUM.exists():
            between, work = in_a_browser(picks, admin, max(2 * scale, 1.0))
            yield Figure("browser: script per frame, median", statistics.median(work), "ms", MAX_SCRIPT_MS, False)
            yield Figure("browser: script per frame, p99", statistics.quantiles(work, n=100)[-1], "ms")
            yield Figure("browser: time between frames, median", statistics.median(between), "ms", 18.5, False)
            late = sum(each > 1.5 * FRAME_MS for each in between) / len(between)
            yield Figure("browser: frames that came late", 100 * late, "%")
