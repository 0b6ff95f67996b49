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
    "records": """## What records cost

A run of the threshold policy under a constant load logs its events, and makes the records that were asked
for in bulk. "Time at each threshold" leaves out the spread, the imbalance and the levels, as `evenly sweep
--values` does where it can. Messages and the tasks of the fullest pool are always recorded. A cost is
relative to the kernel with the fewest records.

The lean chains record the time at each threshold, and nothing else. With mean holding times, it is
`bench/lean.cpp`, which decides on integers, with xoshiro128+. With exponential ones, it is `bench/chain.cpp`
without its other records. The time is that of the processor, because other programs were running on both
cores. The command is `python -m bench --only records --rounds 61 --scale 2`.

- Machine: {machine}

{table}
""",
    "slow-corners": """## Corners of the simulator

Swinging loads, large samples and uneven starts, each next to the same system with a constant load, a sample
of two pools or a balanced start.

- **Waves.** Arrivals are proposed at the peak rate, and those above the current load are rejected: 40 % of
  them at `0:6~4`. Every event needs a sine and two square roots for the imbalance. If the load passes other
  levels between two events, each level is a stretch of its own, with eight square roots or more. With a
  period of 0.0001, the load passes all ten levels about twenty times between two events. The imbalance at
  every load enters the average, so each event takes at least one pass over these levels. With few pools, the
  load moves further between two events: `0:6~4/24` takes five times the steady cost with 5 pools.
- **Uneven starts.** On 10,000 levels, a task is found by a search in fourteen steps, instead of a walk over
  one or two levels.

- Machine: {machine}

{table}
""",
    "late-messages": """## Messages that take time

500 pools, load 5.5, and a delay of 0.01 mean task times for every task and message. An event is an arrival or
a departure; messages on the way come on top. The spread of the learning threshold (alpha 0.6 for 10
pools, 0.8 up to 64 pools, 0.9 from 100 on) is compared with that of JSQ with the same delays, which counts a
task at the pick and gets a report of every departure. The table has the worst of 63 systems: 10 to 1,000
pools, loads from 1.5 to 12.25. All messages are counted. Below 1.0 departures are missing that JSQ reports.

- Machine: {machine}

{table}
""",
    "own-policy": """## Policies in Python

A policy of your own decides in Python about every arrival, and is told about every departure. 500 pools, load
5.5. The policy that does nothing takes the pools in turn and keeps no counts: what remains is the cost of the
loop around it. The copy of JSQ is `JoinShortestQueue` of `evenly.core`, passed as a class. With capacity 6,
some tasks are lost, and events drawn ahead are drawn again after each of them. One thread does all the work:
the figures are per second of its processor time.

- Machine: {machine}

{table}
""",
    "sessions": """## Other service laws

500 pools, load 5.5, and a session kernel that keeps every open session with the time at which it ends. The
queues below hold sessions that end at random times: the next one is taken out, and another one put in. A
calendar queue is faster than a heap there. It needs a width of its days that suits the rate of departures,
and its cost grows with the number of sessions that end at the same time: all those of time 0, if the law is
deterministic. The kernel uses the heap with four children, whose cost is bounded for every law.

- Machine: {machine}

{table}
""",
    "playground": """## The playground

The simulator of `evenly play` in JavaScript, with the random numbers of `evenly simulate`: in Node, per
second of processor time, and in a worker of Debian's Chromium, per second, with the points of the charts and
the copies that it keeps for going back in time. A frame is what the page draws at 60 frames per second with
500 pools: our part of it is the time in our code, drawing included. Chromium draws without a graphics card
here.

- Machine: {machine}

{table}
""",
    "sweeps": """## Sweeps

A small point is a run of 10 pools with about 200 events. The plain loop runs the same points in one process,
and keeps nothing. Processes are warm: they have started, and have their kernel. The large points behind the
gain of a second process are runs of the paper's system with about 700,000 events each. Ray is started on this
machine; its rows are missing if it is not installed (`make ray` does that).

- Machine: {machine}

{table}
""",
    "sweeps-gpu": """## Sweeps on a GPU

500 pools, through `evenly sweep --engine gpu`. Events are counted per second of device time, without
compilation. The default values are the means of tasks, fullest pool, spread, messages, threshold and its
changes.

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
- **The echo picker** is the cheapest picker that Envoy accepts, in C++ (`bench/echo_picker.cpp`): it sends
  prepared answers and decides nothing. The latency that it adds comes from Envoy, the kernel and the
  scheduler, so no picker on this machine can add less.
- **Direct to the picker** means without Envoy: a Python client sends the messages that Envoy would send.
- **Request latency** is measured from the moment the request is sent. Each `wrk` connection waits a random
  time between requests. Together they start slightly more than 2,500 sessions per second, half the goal. Runs
  without a picker, with ours and with the echo picker alternate for {rounds} rounds, and the added latency is
  the median of the differences within rounds. This load keeps two cores about 70 % busy. If the busy share is
  higher, something else was running, and the p99 mostly measures the wait for a core.

- Machine: {machine}

{table}
""",
    "live-scrapes": """### How long picks wait for the admin port

The picker answers its admin port in the event loop that serves picks. A client asks for 1,000 picks per
second, directly and at a constant rate, while another reads one path of the admin port. The figure is the
longest time that a pick took in a round, in the calmest of {rounds} rounds: every round has many requests, so
a block shows in each, and a busy machine does not. With no requests, it is what a pick waits anyway.

- Machine: {machine}

{table}
""",
    "live-dashboards": """### What dashboards cost

A picker with 1,000 pools and 5,500 open sessions, of which 1,000 per second end and as many start. Without a
dashboard, with one and with ten, in turn in each round: the picker's time on a core, and the p99 of a pick.
Then a dashboard in Chromium, headless and without a graphics card: the time that its script takes for a
frame, and the time between frames, on the cores that also run the picker and its load. Columns are in motion
all the time, since most pools change between two messages.

- Machine: {machine}

{table}
""",
    "live-memory": """### How much memory

Idle WebSocket sessions through Envoy, compared with the same processes before the first session.

- Machine: {machine}

{table}
""",
    "siege": """### Under attack

Each attack meets a fresh balancer in front of 20 pools, with 500 innocent WebSocket sessions open and a limit
of 4,000 open files per process. The attack lasts 10 s. An innocent is lost if its session ends; a newcomer is
a client that tries to open a session during the attack or after it, until one is served again. Memory is the
resident memory of all processes of the balancer. `python -m chaos` has more attacks, and says what must hold:
see [the guide](guides/chaos.md).

HAProxy derives its limit of connections from its limit of files. It closes connections whose headers take
longer than 10 s, as its manual recommends, and has its default settings otherwise (`bench/siege.py`).

- Machine: {machine}

{table}
""",
    "fleet-balance": """### How even a fleet is

20 pools, load 5.5, WebSocket sessions of 4 s on average. A client asks a random dispatcher for a place, over
a new connection, and goes straight to the pool. Every fleet has its own pools and gets the same visits at the
same time. Spread, ± and JSQ are those of [How even](#how-even). A busy machine costs evenness: in another
run, where a pick took 17 ms on average, all three fleets measured 1.06 times JSQ's spread.

The models replay the same visits without a network. With reports, each pool sends its number of sessions once
a second, and a session goes to the pool that seems to have the fewest. A message takes half of the mean time
of a pick.

The paper's bound is two tokens per session. Over a network, one is enough. Other messages are heartbeats, one
per pool every 2 s, each with a reply that is not counted. Messages are counted by the dispatchers.

- Machine: {machine}

{table}
""",
    "fleet-speed": """### How fast a dispatcher is

20 agents, 110 open sessions. 64 clients ask for places over kept connections, each as soon as it has the
answer. With each answer a session begins at its pool and a random other one ends, so that all messages of the
agents are included.

- **Picks per second of the dispatcher's core** are picks divided by the processor time of its process,
  including the kernel. The load generator and the store need the cores too, so the rate on this machine is
  lower.
- **Bare uvicorn** is the limit of HTTP: a raw ASGI application on the same server, with a constant answer, no
  agents and no limits on connections.
- **redis.asyncio** is the limit of the store: a plain client that calls the store's function, with a
  pipeline and without one. It has no HTTP and no agents; its own processor time counts.
- **The wait for a pick** is measured from the moment the request is due. Load generator, dispatcher and store
  share the cores, and p99 mostly shows the wait for a core.

All were measured in turn for {rounds} rounds. Ratios are medians of the ratios within rounds.

- Machine: {machine}

{table}
""",
    "fleet-scale": """### How many agents

1,000 agents connect to one dispatcher at once, send heartbeats, and then take sessions as fast as the
dispatcher picks (alpha 0.9). The goals are those for 20 agents. Memory is private memory, as reported by the
kernel. The agents are those of the load generator, in one process.

- Machine: {machine}

{table}
""",
    "fleet-recovery": """### How fast a fleet recovers

20 pools without sessions, heartbeats every 2 s. A part is killed with SIGKILL and started again at once, or,
where the table says so, when its loss has shown. The times include the start of a new process: about half a
second for a dispatcher. They are medians; a state counts from the moment since which it has lasted a second.

- Machine: {machine}

{table}
""",
}
LIVE = """## The live balancer

Real processes on one machine: Envoy, the picker, the pools and the clients share its cores.
"""
FLEET = """## The fleet

Real processes on one machine: `evenly dispatcher`, agents, a Valkey server and the clients share its cores.
"embedded" is a dispatcher that keeps its tokens in process, "Valkey" one with `--store`.
"""


def section(name: str, machine: str, rounds: int, rows: list[str]) -> str:
    """Return a section with its measurements filled in."""
    return MEASURED[name].format(machine=machine, rounds=rounds, table=TABLE + "\n".join(rows))


def renewed(page: str, sections: Mapping[str, str]) -> str:
    """Return the page with these sections replaced or added. The others are kept."""
    kept = {_heading(text): text.rstrip() + "\n" for text in re.split(r"^(?=#)", page, flags=re.MULTILINE)}
    texts = {name: sections.get(name) or kept.get(_heading(text)) for name, text in MEASURED.items()}
    groups = {"": "", "live": LIVE, "fleet": FLEET}
    lines = []
    for group, heading in groups.items():
        of_group = [text for name, text in texts.items() if _group(name) == group]
        lines += [heading, *of_group]
    return "\n".join(text for text in lines if text)


def _group(name: str) -> str:
    first = "live" if name == "siege" else name.partition("-")[0]
    return first if first in ("live", "fleet") else ""


def _heading(text: str) -> str:
    return text.partition("\n")[0]
