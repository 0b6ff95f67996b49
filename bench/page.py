"""The benchmarks page: the text of its sections, and how to renew some of them and keep the others."""

from __future__ import annotations

import re
from collections.abc import Mapping

TABLE = "| metric | measured | goal | met |\n| --- | ---: | ---: | --- |\n"

# The sections by the name that --only takes, in the order of the page. Each begins with its heading.
MEASURED = {
    "simulator": """# Benchmarks

Everything in a table was measured side by side in one run, in {rounds} rounds. A ratio is the median of the
ratios within rounds, so it remains meaningful on a busy machine, where times do not. The system is the
paper's: 500 pools, load 10.5, and a learning threshold with alpha 0.97.

- Machine: {machine}
- Command: `make bench`; `python -m bench --help` shows how to renew a single section

{table}

The baselines are in `bench/`. `chain.cpp` is the same Markov chain with the same records, written by hand in
C++17 (`-O3 -march=native`, xoshiro256++, ziggurat). `simpy_model.py` is a straightforward SimPy model with
one process per task and fewer records. `python -m bench.baselines` checks that both simulate the same system.
The C++ rows are missing if there is no compiler. The fluid solver is compared with SciPy's own implicit
solver on the only stretch that a general solver can handle, before the first event.
""",
    "late-messages": """## Messages that take time

500 pools, load 5.5, and a delay of 0.01 mean task times for every task and message. An event is an arrival or
a departure; messages on the way come on top. The spread of the learning threshold (alpha 0.8 up to 64 pools,
0.9 from 100 on) is compared with that of JSQ with the same delays, which counts a task at the pick and gets a
report of every departure. The table has the worst of 54 systems: 20 to 1,000 pools, loads from 1.5 to 12.25.

- Machine: {machine}

{table}
""",
    "live-balance": """### How even

20 pools, load 5.5, WebSocket sessions of 4 s on average. Every balancer gets the same visits at the same time
and has its own pools. With several gateways, each visit goes to a random one. The spread is the time average
of the standard deviation of the sessions over the pools, as seen by the clients; ± is a 95 % interval from
batches.

JSQ is the ideal: the same visits, replayed without a network through a balancer that knows everything
instantly. HAProxy's leastconn with one gateway also knows everything, so the gap between it and JSQ shows
what delays in the network and the machine cost. The shorter the sessions, the more a delay of milliseconds
matters. We chose 4 s because with sessions of 2 s, on a busy machine, evenly and HAProxy with one gateway
both measured 1.03 to 1.16 times JSQ's spread.

- Machine: {machine}

{table}

The other balancers have their default settings. Envoy's least_request compares two pools chosen at random.
Four gateways of another balancer run in one process but share neither counts nor clusters
(`bench/rivals.py`).
""",
    "live-speed": """### How fast

Each session is one short request, so that only the start of sessions costs anything. `wrk` sends them over 64
connections, and the pools are listeners of another Envoy that answer instantly. Everything shares the cores.

- **Processor time** is that of the picker's process, including the kernel.
- **The naive picker** is a straightforward one on `grpc.aio` with prepared answers (`bench/rivals.py`). It
  does not count sessions.
- **Direct to the picker** means without Envoy: a Python client sends the messages that Envoy would send.
- **Request latency** is measured from the moment the request is sent. Each `wrk` connection waits a random
  time between requests. Together they start slightly more than 2,500 sessions per second, half the goal. Runs
  with and without the picker alternate for {rounds} rounds, and the added latency is the median of the differences
  within rounds. This load keeps two cores about 70 % busy. If the busy share is higher, something else was
  running, and the p99 mostly measures the wait for a core.

- Machine: {machine}

{table}
""",
    "live-memory": """### How much memory

Idle WebSocket sessions through Envoy, compared with the same processes before the first session.

- Machine: {machine}

{table}
""",
}
LIVE = """## The live balancer

Real processes on one machine: Envoy, the picker, the pools and the clients share its cores.
"""


def section(name: str, machine: str, rounds: int, rows: list[str]) -> str:
    """Return a section with its measurements filled in."""
    return MEASURED[name].format(machine=machine, rounds=rounds, table=TABLE + "\n".join(rows))


def renewed(page: str, sections: Mapping[str, str]) -> str:
    """Return the page with these sections replaced or added. The others are kept."""
    kept = {_heading(text): text.rstrip() + "\n" for text in re.split(r"^(?=#)", page, flags=re.MULTILINE)}
    texts = {name: sections.get(name) or kept.get(_heading(text)) for name, text in MEASURED.items()}
    before = [texts.pop(name) for name in ("simulator", "late-messages")]
    return "\n".join(text for text in (*before, LIVE, *texts.values()) if text)


def _heading(text: str) -> str:
    return text.partition("\n")[0]
