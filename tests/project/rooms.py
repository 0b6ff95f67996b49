"""The rooms of the house: what each holds, and what it may import.

The layer test and the architecture page read this table. A room is a package or a single module. A module belongs
to the room with the longest matching name. The `__init__` of a package with rooms inside is a front door: it
re-exports, so it may import those rooms.
"""

from dataclasses import dataclass

MATPLOTLIB, PANDAS, POLARS = "matplotlib", "pandas", "polars"


@dataclass(frozen=True, kw_only=True)
class Room:
    """A room: `may` and `packages` are the rooms and the third-party libraries that it may import.

    `lazily` may only be imported inside functions and for type checking. A room may import all of the standard
    library, or only `standard` if that is given: a room without clock, randomness and I/O.
    """

    holds: str
    may: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    lazily: tuple[str, ...] = ()
    standard: tuple[str, ...] | None = None


_PURE = (
    "__future__",
    "bisect",
    "collections",
    "dataclasses",
    "decimal",
    "enum",
    "fractions",
    "functools",
    "math",
    "typing",
)

ROOMS: dict[str, Room] = {
    "lazy": Room(holds="Front doors: packages that load their public names when first used."),
    "errors": Room(holds="Errors that are not our bugs, and their exit codes."),
    "inputs": Room(holds="Checks of input values, and the wording of rejections.", may=("errors",)),
    "files": Room(holds="Bounded reads, atomic writes, checks of paths.", may=("errors", "inputs")),
    "policies": Room(
        holds="The only list of policy names and their parameters. No rules.", may=("errors", "inputs")
    ),
    "frames": Room(
        holds="What every result shares: repr, HTML, frames, equality.", may=("errors",), lazily=(PANDAS, POLARS)
    ),
    "logs.record": Room(holds="The lines of our own log of sessions, which `--record` writes."),
    "logs": Room(
        holds="Logs of sessions: readers of the formats of Envoy, HAProxy, nginx and others.",
        may=("errors", "files", "inputs", "logs.record"),
        packages=("numpy",),
        lazily=(POLARS, "backports", "compression"),  # the last two: Zstandard, of Python 3.14 or for older
    ),
    "workload": Room(
        holds="What arrives, and where: demand, service laws, arrivals, sessions drawn ahead, sizes of pools.",
        may=("errors", "files", "inputs"),
    ),
    "core": Room(
        holds="The rules: dispatcher, pool, learning rule, other policies. No clock, no randomness, no I/O.",
        may=("errors", "inputs", "policies", "workload"),
        standard=_PURE,
    ),
    "own_policy": Room(
        holds="A policy of the user's own: find its class, make one, and name what is wrong with it.",
        may=("core", "errors", "inputs", "policies"),
    ),
    "testing": Room(
        holds="The contract of policies, to check one of your own: `check_policy`.",
        may=("core", "errors", "inputs", "own_policy"),
    ),
    "core.protocol": Room(
        holds="The same rules over a network: tickets, incarnations, heartbeats. No clock, no randomness, no I/O.",
        may=("core", "errors", "inputs"),
        standard=(*_PURE, "json"),
    ),
    "faults": Room(
        holds="The protocol in a simulated bad network, with crashes, in virtual time; what must hold.",
        may=("core", "core.protocol", "errors", "inputs"),
    ),
    "plots": Room(
        holds="Arrays to axes.", may=("errors", "files", "inputs", "workload"), packages=(MATPLOTLIB, "numpy")
    ),
    "sim.kernels": Room(holds="Compiled loops, their records and random numbers.", packages=("numba", "numpy")),
    "sim": Room(
        holds="One system in virtual time: scenario, run, result, saved files; a slow reference that drives core.",
        may=("core", "errors", "files", "frames", "inputs", "own_policy", "policies", "sim.kernels", "workload"),
        packages=("numpy",),
        lazily=("plots", MATPLOTLIB, "scipy"),
    ),
    "sim.coupling": Room(
        holds="Several systems on one probability space.",
        may=("errors", "frames", "inputs", "sim", "sim.kernels", "workload"),
        packages=("numpy",),
    ),
    "sim.gpu": Room(
        holds="The aggregate chain in C++, for a GPU: scenarios as its points, and their launch.",
        may=("errors", "sim"),
        packages=("numpy",),
        lazily=("cupy",),
    ),
    "theory": Room(
        holds="Shared ground: balanced occupancy, equilibria, best utility, settling and tuning.",
        may=("errors", "frames", "inputs", "policies", "workload"),
        packages=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "theory.exact": Room(
        holds="The exact stationary distribution of a small system.",
        may=("errors", "frames", "inputs", "policies", "theory"),
        packages=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "theory.fluid": Room(
        holds="Fluid limits over time.",
        may=("errors", "frames", "inputs", "policies", "theory", "workload"),
        packages=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "theory.diffusion": Room(
        holds="Diffusion limits at fractional and at whole loads.",
        may=("errors", "frames", "inputs", "theory"),
        packages=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "theory.stability": Room(
        holds="How steady the learned threshold of a finite system is.",
        may=("errors", "frames", "inputs", "theory"),
        packages=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "advice": Room(
        holds="Which alpha to use: theory where it reaches, simulation beyond.",
        may=("errors", "frames", "inputs", "lazy", "sim", "theory", "theory.exact", "theory.stability",
             "workload"),
        packages=("numpy",),
        lazily=("plots", MATPLOTLIB),
    ),
    "whatif": Room(
        holds="What the policies would have done with the sessions of a log: replay, window, sizing, report.",
        may=("advice", "errors", "files", "frames", "inputs", "lazy", "logs", "logs.record", "own_policy",
             "policies", "sim", "sim.kernels", "workload"),
        packages=("jinja2", "numpy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "sweeps": Room(
        holds="Many scenarios at once: grid, identity of points, folder of Parquet files, schedule, result.",
        may=("errors", "files", "frames", "inputs", "lazy", "own_policy", "policies", "sim", "sim.gpu",
             "theory", "workload", "__init__"),
        packages=("numpy",),
        lazily=("plots", "theory.diffusion", "cloudpickle", MATPLOTLIB, POLARS, "ray", "xarray"),
    ),
    "paper.experiments": Room(
        holds="The runs behind figures and claims. They produce data and do not judge it.",
        may=("core", "errors", "inputs", "policies", "sim", "sim.coupling", "theory", "theory.fluid",
             "theory.stability", "workload"),
        packages=("numpy",),
    ),
    "paper.figures": Room(
        holds="Drawing and captions of the paper's figures.",
        may=("errors", "inputs", "paper.experiments", "plots", "policies", "sim", "theory", "workload"),
        packages=(MATPLOTLIB, "numpy"),
    ),
    "paper.claims": Room(
        holds="The paper's claims: each judges the data of experiments.",
        may=("paper.experiments", "policies", "sim", "sim.coupling", "theory", "theory.diffusion", "theory.fluid"),
        packages=("numpy", "scipy"),
    ),
    "paper.report": Room(
        holds="The HTML report and its links into code and tests.",
        may=("files", "frames", "paper.claims", "paper.experiments", "paper.figures", "__init__"),
        packages=("jinja2",),
    ),
    "paper": Room(
        holds="Runs the whole reproduction in parallel: `evenly paper`.",
        may=("errors", "files", "inputs", "paper.claims", "paper.experiments", "paper.figures", "paper.report"),
    ),
    "web": Room(holds="Pages for browsers, as static files: what they share, and how they are served."),
    "live.pool_scheme": Room(
        holds="The scheme of a pool: what it speaks, and how it is found.", may=("errors", "inputs")
    ),
    "live.addresses": Room(
        holds="HOST:PORT, and the weights and protocol of pools, parsed and checked.",
        may=("errors", "inputs", "live.pool_scheme", "workload"),
    ),
    "live": Room(
        holds="What all live rooms use: settings, certificates, tokens, log, records, child processes, signals.",
        may=("core", "errors", "files", "inputs", "live.addresses", "live.pool_scheme", "logs.record", "policies"),
        packages=("pydantic",),
    ),
    "live.agents": Room(
        holds="Agents: they count a pool's sessions and report them; for asyncio, and as ASGI middleware.",
        may=("core.protocol", "errors", "files", "inputs", "live", "live.addresses"),
        packages=("websockets",),
    ),
    "live.http": Room(
        holds="HTTP with limits on headers, time and connections.", packages=("uvicorn",)
    ),
    "live.agents.sidecar": Room(
        holds="An agent for servers in any language: a process with a loopback HTTP API.",
        may=("errors", "inputs", "live", "live.addresses", "live.agents", "live.http"),
        packages=("uvicorn",),
    ),
    "live.wire": Room(holds="Bytes to calls: HTTP/2, gRPC, protocol buffers.", packages=("hpack",)),
    "live.balancer": Room(
        holds="Which pool gets a session: sessions, pools and their life cycle, slow start, typed events. No I/O.",
        may=("core", "errors", "live.addresses", "policies"),
        standard=_PURE,
    ),
    "live.envoy": Room(
        holds="Everything about Envoy: bootstrap, process, picks, endpoints, the counts of its admin port.",
        may=("errors", "inputs", "live", "live.addresses", "live.balancer", "live.pool_scheme", "live.wire"),
    ),
    "live.dashboard": Room(
        holds="What the dashboard shows, as data: figures, the last hour, logins, the stream.", may=("live",)
    ),
    "live.admin.schema": Room(
        holds="The JSON of the admin port.", may=("live.balancer",), packages=("pydantic",)
    ),
    "live.admin": Room(
        holds="The admin port: routes, metrics, authentication, its documentation page, the dashboard.",
        may=("errors", "live", "live.addresses", "live.admin.schema", "live.balancer", "live.dashboard",
             "live.http", "web"),
        packages=("fastapi", "jinja2", "pydantic", "starlette", "uvicorn"),
    ),
    "live.discovery": Room(
        holds="Pools found by DNS: lookups, TTLs, answers, and what the operator decided by hand.",
        may=("errors", "live", "live.addresses", "live.balancer"),
        packages=("dns",),
    ),
    "live.picker.ready": Room(holds="The ready line, as data.", may=("errors", "inputs", "live.addresses")),
    "live.picker": Room(
        holds="The picker process: server, routes, background work, state file, settings watch.",
        may=("errors", "files", "live", "live.addresses", "live.admin", "live.admin.schema", "live.balancer",
             "live.dashboard", "live.discovery", "live.envoy", "live.picker.ready", "live.wire"),
        packages=("pydantic",),
        lazily=("live.store",),
    ),
    "live.store": Room(
        holds="Shared state: the members and tokens of a fleet, the session counts of several pickers.",
        may=("core", "core.protocol", "errors", "inputs", "live", "live.addresses"),
        packages=("hiredis", "redis"),
    ),
    "live.dispatcher": Room(
        holds="The dispatcher process: API, agents' connections, admin port.",
        may=("core", "core.protocol", "errors", "inputs", "live", "live.addresses", "live.admin",
             "live.admin.schema", "live.balancer", "live.dashboard", "live.http", "live.picker.ready",
             "live.store"),
        packages=("fastapi", "pydantic", "starlette", "uvicorn", "uvloop"),
    ),
    "live.gateway": Room(
        holds="The supervisor of Envoy and picker, their ports and processes.",
        may=("errors", "files", "live", "live.addresses", "live.envoy", "live.picker.ready", "live.pool_scheme"),
    ),
    "live.demo": Room(
        holds="Embedded pools and traffic around a real Envoy and picker.",
        may=("core", "errors", "inputs", "live", "live.addresses", "live.admin.schema", "live.envoy",
             "live.gateway", "workload"),
        packages=("pydantic", "websockets"),
    ),
    "live.demo.fleet": Room(
        holds="A fleet of real processes around a store: sessions go straight to the pools, and parts are killed.",
        may=("core", "errors", "inputs", "live", "live.addresses", "live.agents", "live.demo", "live.dispatcher",
             "live.gateway", "live.store", "workload"),
        packages=("pydantic", "websockets"),
    ),
    "cli": Room(
        holds="Options, input, output, progress: what the commands share.",
        may=("errors", "files", "inputs", "policies"),
        packages=("rich", "typer"),
        lazily=("sim", "sweeps", "workload"),
    ),
    "cli.text": Room(
        holds="Results as text.",
        may=("frames", "live.demo", "live.demo.fleet", "sim", "whatif"),
        packages=("rich", "typer"),
        lazily=("advice", "sweeps", "theory", "theory.diffusion", "theory.exact", "theory.fluid",
                "theory.stability"),
    ),
    "cli.commands": Room(
        holds="One module per subcommand: parse, call, print.",
        may=("cli", "errors", "files", "inputs", "policies"),
        packages=("rich", "typer"),
        lazily=("advice", "cli.text", "live", "live.addresses", "live.agents.sidecar", "live.demo",
                "live.demo.fleet", "live.dispatcher", "live.envoy", "live.gateway", "live.picker", "paper",
                "paper.claims", "paper.experiments", "paper.report", "plots", "sim", "sweeps", "theory",
                "theory.diffusion", "theory.exact", "theory.fluid", "web", "whatif"),
    ),
    "cli.main": Room(
        holds="The `evenly` command and its exit codes.",
        may=("cli", "cli.commands", "errors", "__init__"),
        packages=("typer",),
    ),
    "__init__": Room(holds="The front door of the package: public names, loaded when first used.", may=("lazy",)),
    "__main__": Room(holds="`python -m evenly`.", lazily=("cli.main",)),
}  # fmt: skip
