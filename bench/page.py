"""The page of the benchmarks: its sections, and how some of them are renewed while the others stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping

TABLE = "| figure | measured | goal | met |\n| --- | ---: | ---: | --- |\n"

# Sections with the option that measures each, in the order of the page. A section begins with its heading.
MEASURED = {
    "simulator": """# Benchmarks

Measured side by side in one run, in turn, {rounds} rounds; a ratio is the median of the ratios within rounds. On a
busy machine a ratio holds where a time does not. The system is the paper's: 500 pools, load 10.5, learning
threshold with alpha 0.97.

- Machine: {machine}
- Command: `make bench`; `python -m bench --help` tells how to renew a part

{table}

The opponents are in `bench/`: `chain.cpp` is the same Markov chain with the same records, written by hand in
C++17 (`-O3 -march=native`, xoshiro256++, ziggurat); `simpy_model.py` is a straightforward SimPy model with a
process for each task, and fewer records. `python -m bench.opponents` checks that the two simulate the same
system. Without a C++ compiler its figures are missing. The fluid solver meets SciPy's own implicit solver on the
one stretch that a general solver can take, before the first event.
""",
    "live-balance": """### How even

20 pools, load 5.5, WebSocket sessions of 4 s on average. Every balancer gets the same visits at the same time,
onto pools of its own; several gateways get them at random. The spread is the time average of the standard
deviation of the sessions over the pools, as the clients saw them; ± is a 95 % interval from batches. JSQ is the
ideal: the same visits replayed without a network through a balancer that knows everything at once. HAProxy's
leastconn with one gateway knows everything too, so what it lacks to JSQ is what the delays of the network and the
machine cost. Delays of milliseconds matter the more the shorter the sessions: the 4 s were chosen after runs with
sessions of 2 s, on a busy machine, had read 1.03 to 1.16 times JSQ's spread, for evenly and for HAProxy with one
gateway alike.

- Machine: {machine}

{table}

Rivals are as they come: Envoy's least_request compares two pools, chosen at random. Their four gateways share a
process, but neither counts nor clusters (`bench/rivals.py`).
""",
    "live-speed": """### How fast

One session is one short request, so that nothing but the start of sessions costs; `wrk` sends them over 64
connections, and pools are listeners of another Envoy that answer at once. All share the cores. Processor time is
that of the picker's process, kernel included. The naive picker is a straightforward one on `grpc.aio` with answers
made once (`bench/rivals.py`); it counts nothing. Straight at the picker means without Envoy: a Python client tells
it of sessions with the messages that Envoy would send. For the times of requests, each connection of `wrk` waits
at random before it sends the next one, so that a little more than half of the goal of 5,000 starts a second come;
a time counts from the sending. With and without the picker take turns, {rounds} rounds; the time added is the
median of the differences within rounds. All this keeps two cores busy to about 70 %; where the busy share is
higher, something else ran too, and the p99 is that of waiting for a core.

- Machine: {machine}

{table}
""",
    "live-memory": """### How much memory

Quiet WebSocket sessions through Envoy, against the same processes before the first one.

- Machine: {machine}

{table}
""",
}
LIVE = """## The live balancer

Real processes on the same machine: Envoy, the picker, pools and clients share its cores.
"""


def section(name: str, machine: str, rounds: int, rows: list[str]) -> str:
    """A section with what was measured."""
    return MEASURED[name].format(machine=machine, rounds=rounds, table=TABLE + "\n".join(rows))


def renewed(page: str, sections: Mapping[str, str]) -> str:
    """The page with these sections new; the others stay as they are, and stay away where they never were."""
    kept = {_heading(text): text.rstrip() + "\n" for text in re.split(r"^(?=#)", page, flags=re.MULTILINE)}
    texts = {name: sections.get(name) or kept.get(_heading(text)) for name, text in MEASURED.items()}
    first = texts.pop("simulator")
    return "\n".join(text for text in (first, LIVE, *texts.values()) if text)


def _heading(text: str) -> str:
    return text.partition("\n")[0]
