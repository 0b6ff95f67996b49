"""The packages of `evenly`, what each may import, and the loop that checks it.

A module belongs to the package with the longest matching name. The `__init__` of a package with others inside is a
front door: it re-exports, so it may import those. An import through a front door counts as one of the package that
defines the name.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "evenly"
MATPLOTLIB, PANDAS, POLARS = "matplotlib", "pandas", "polars"


@dataclass(frozen=True, kw_only=True)
class Package:
    """What a package holds, and which packages (`may`) and third-party libraries it may import.

    `lazily` may only be imported inside functions and for type checking. A package may import all of the standard
    library, or only `standard` if that is given: no clock, no randomness, no I/O, no coroutines.
    """

    holds: str
    may: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
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

PACKAGES: dict[str, Package] = {
    "lazy": Package(holds="Front doors: packages that load their public names when first used."),
    "errors": Package(holds="Errors that are not our bugs, and their exit codes."),
    "inputs": Package(holds="Checks of input values, and the wording of rejections.", may=("errors",)),
    "files": Package(holds="Bounded reads, atomic writes, checks of paths.", may=("errors", "inputs")),
    "policies": Package(
        holds="The only list of policy names and their parameters. No rules.", may=("errors", "inputs")
    ),
    "frames": Package(
        holds="What every result shares: repr, HTML, frames, equality.", may=("errors",), lazily=(PANDAS, POLARS)
    ),
    "logs.record": Package(holds="The lines of our own log of sessions, which `--record` writes."),
    "logs": Package(
        holds="Logs of sessions: readers of the formats of Envoy, HAProxy, nginx and others.",
        may=("errors", "files", "inputs", "logs.record"),
        libraries=("numpy",),
        lazily=(POLARS, "backports", "compression"),  # the last two: Zstandard, of Python 3.14 or for older
    ),
    "workload": Package(
        holds="What arrives, and where: demand, service laws, arrivals, sessions drawn ahead, sizes of pools.",
        may=("errors", "files", "inputs"),
    ),
    "core": Package(
        holds="The rules: dispatcher, pool, learning rule, other policies. No clock, no randomness, no I/O.",
        may=("errors", "inputs", "policies", "workload"),
        standard=_PURE,
    ),
    "own_policy": Package(
        holds="A policy of the user's own: find its class, make one, and name what is wrong with it.",
        may=("core", "errors", "inputs", "policies"),
    ),
    "testing": Package(
        holds="The contract of policies, to check one of your own: `check_policy`.",
        may=("core", "errors", "inputs", "own_policy"),
    ),
    "core.protocol": Package(
        holds="The same rules over a network: tickets, incarnations, heartbeats. No clock, no randomness, no I/O.",
        may=("core", "errors", "inputs"),
        standard=(*_PURE, "json"),
    ),
    "plots": Package(
        holds="Arrays to axes.", may=("errors", "files", "inputs", "workload"), libraries=(MATPLOTLIB, "numpy")
    ),
    "sim.kernels": Package(
        holds="Compiled loops, their records and random numbers.", libraries=("numba", "numpy")
    ),
    "sim": Package(
        holds="One system in virtual time: scenario, run, result, saved files; a slow reference that drives core.",
        may=("core", "errors", "files", "frames", "inputs", "own_policy", "policies", "sim.kernels", "workload"),
        libraries=("numpy",),
        lazily=("plots", MATPLOTLIB, "scipy"),
    ),
    "sim.coupling": Package(
        holds="Several systems on one probability space.",
        may=("errors", "frames", "inputs", "sim", "sim.kernels", "workload"),
        libraries=("numpy",),
    ),
    "sim.gpu": Package(
        holds="The aggregate chain in C++, for a GPU: scenarios as its points, and their launch.",
        may=("errors", "sim"),
        libraries=("numpy",),
        lazily=("cupy",),
    ),
    "theory": Package(
        holds="Shared ground: balanced occupancy, equilibria, best utility, settling and tuning.",
        may=("errors", "frames", "inputs", "policies", "workload"),
        libraries=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "theory.exact": Package(
        holds="The exact stationary distribution of a small system.",
        may=("errors", "frames", "inputs", "policies", "theory"),
        libraries=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "theory.fluid": Package(
        holds="Fluid limits over time.",
        may=("errors", "frames", "inputs", "policies", "theory", "workload"),
        libraries=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "theory.diffusion": Package(
        holds="Diffusion limits at fractional and at whole loads.",
        may=("errors", "frames", "inputs", "theory"),
        libraries=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "theory.stability": Package(
        holds="How steady the learned threshold of a finite system is.",
        may=("errors", "frames", "inputs", "theory"),
        libraries=("numpy", "scipy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "advice": Package(
        holds="Which alpha to use: theory where it reaches, simulation beyond.",
        may=("errors", "frames", "inputs", "lazy", "sim", "theory", "theory.exact", "theory.stability",
             "workload"),
        libraries=("numpy",),
        lazily=("plots", MATPLOTLIB),
    ),
    "whatif": Package(
        holds="What the policies would have done with the sessions of a log: replay, window, sizing, report.",
        may=("advice", "errors", "files", "frames", "inputs", "lazy", "logs", "logs.record", "own_policy",
             "policies", "sim", "sim.kernels", "workload"),
        libraries=("jinja2", "numpy"),
        lazily=("plots", MATPLOTLIB),
    ),
    "sweeps": Package(
        holds="Many scenarios at once: grid, identity of points, folder of Parquet files, schedule, result.",
        may=("errors", "files", "frames", "inputs", "lazy", "own_policy", "policies", "sim", "sim.gpu",
             "theory", "workload", "__init__"),
        libraries=("numpy",),
        lazily=("plots", "theory.diffusion", "cloudpickle", MATPLOTLIB, POLARS, "ray", "xarray"),
    ),
    "paper.experiments": Package(
        holds="The runs behind figures and claims. They produce data and do not judge it.",
        may=("core", "errors", "inputs", "policies", "sim", "sim.coupling", "theory", "theory.fluid",
             "theory.stability", "workload"),
        libraries=("numpy",),
    ),
    "paper.figures": Package(
        holds="Drawing and captions of the paper's figures.",
        may=("errors", "inputs", "paper.experiments", "plots", "policies", "sim", "theory", "workload"),
        libraries=(MATPLOTLIB, "numpy"),
    ),
    "paper.claims": Package(
        holds="The paper's claims: each judges the data of experiments.",
        may=("paper.experiments", "policies", "sim", "sim.coupling", "theory", "theory.diffusion", "theory.fluid"),
        libraries=("numpy", "scipy"),
    ),
    "paper.report": Package(
        holds="The HTML report and its links into code and tests.",
        may=("files", "frames", "paper.claims", "paper.experiments", "paper.figures", "__init__"),
        libraries=("jinja2",),
    ),
    "paper": Package(
        holds="Runs the whole reproduction in parallel: `evenly paper`.",
        may=("errors", "files", "inputs", "paper.claims", "paper.experiments", "paper.figures", "paper.report"),
    ),
    "web": Package(holds="Pages for browsers, as static files: what they share, and how they are served."),
    "live.pool_scheme": Package(
        holds="The scheme of a pool: what it speaks, and how it is found.", may=("errors", "inputs")
    ),
    "live.addresses": Package(
        holds="HOST:PORT, and the weights and protocol of pools, parsed and checked.",
        may=("errors", "inputs", "live.pool_scheme", "workload"),
    ),
    "live": Package(
        holds="What the others use: settings, certificates, tokens, log, records, child processes, signals.",
        may=("core", "errors", "files", "inputs", "live.addresses", "live.pool_scheme", "logs.record", "policies"),
        libraries=("pydantic",),
    ),
    "live.agents": Package(
        holds="Agents: they count a pool's sessions and report them; for asyncio, and as ASGI middleware.",
        may=("core.protocol", "errors", "files", "inputs", "live", "live.addresses"),
        libraries=("websockets",),
    ),
    "live.http": Package(
        holds="HTTP with limits on headers, time and connections.", may=("live",), libraries=("uvicorn",)
    ),
    "live.agents.sidecar": Package(
        holds="An agent for servers in any language: a process with a loopback HTTP API.",
        may=("errors", "inputs", "live", "live.addresses", "live.agents", "live.http"),
        libraries=("uvicorn",),
    ),
    "live.wire": Package(holds="Bytes to calls: HTTP/2, gRPC, protocol buffers.", libraries=("hpack",)),
    "live.balancer": Package(
        holds="Which pool gets a session: sessions, pools and their life cycle, slow start, typed events. No I/O.",
        may=("core", "errors", "live.addresses", "policies"),
        standard=_PURE,
    ),
    "live.envoy": Package(
        holds="Everything about Envoy: bootstrap, process, picks, endpoints, the counts of its admin port.",
        may=("errors", "inputs", "live", "live.addresses", "live.balancer", "live.pool_scheme", "live.wire"),
    ),
    "live.dashboard": Package(
        holds="What the dashboard shows, as data: figures, the last hour, logins, the stream.", may=("live",)
    ),
    "live.admin.schema": Package(
        holds="The JSON of the admin port.", may=("live.balancer",), libraries=("pydantic",)
    ),
    "live.admin": Package(
        holds="The admin port: routes, metrics, authentication, its documentation page, the dashboard.",
        may=("errors", "live", "live.addresses", "live.admin.schema", "live.balancer", "live.dashboard",
             "live.http", "web"),
        libraries=("fastapi", "jinja2", "pydantic", "starlette", "uvicorn"),
    ),
    "live.discovery": Package(
        holds="Pools found by DNS: lookups, TTLs, answers, and what the operator decided by hand.",
        may=("errors", "live", "live.addresses", "live.balancer"),
        libraries=("dns",),
    ),
    "live.picker.ready": Package(holds="The ready line, as data.", may=("errors", "inputs", "live.addresses")),
    "live.picker.state_file": Package(
        holds="What a picker keeps across a restart.",
        may=("errors", "files", "live", "live.addresses"), libraries=("pydantic",),
    ),
    "live.picker": Package(
        holds="The picker process: server, routes, background work, settings watch.",
        may=("errors", "files", "live", "live.addresses", "live.admin", "live.admin.schema", "live.balancer",
             "live.dashboard", "live.discovery", "live.envoy", "live.picker.ready",
             "live.picker.state_file", "live.wire"),
        lazily=("live.store",),
    ),
    "live.store": Package(
        holds="Shared state: the members and tokens of a fleet, the session counts of several pickers.",
        may=("core", "core.protocol", "errors", "inputs", "live", "live.addresses"),
        libraries=("hiredis", "redis"),
    ),
    "live.dispatcher": Package(
        holds="The dispatcher process: API, agents' connections, admin port.",
        may=("core", "core.protocol", "errors", "inputs", "live", "live.addresses", "live.admin",
             "live.admin.schema", "live.balancer", "live.dashboard", "live.http", "live.picker.ready",
             "live.store"),
        libraries=("fastapi", "pydantic", "starlette", "uvicorn", "uvloop"),
    ),
    "live.gateway": Package(
        holds="The supervisor of Envoy and picker, their ports and processes.",
        may=("errors", "files", "live", "live.addresses", "live.envoy", "live.picker.ready",
             "live.picker.state_file", "live.pool_scheme"),
    ),
    "live.demo": Package(
        holds="Embedded pools and traffic around a real Envoy and picker.",
        may=("core", "errors", "inputs", "live", "live.addresses", "live.admin.schema", "live.envoy",
             "live.gateway", "workload"),
        libraries=("pydantic", "websockets"),
    ),
    "live.demo.fleet": Package(
        holds="A fleet of real processes around a store: sessions go straight to the pools, and parts are killed.",
        may=("core", "errors", "inputs", "live", "live.addresses", "live.agents", "live.demo", "live.dispatcher",
             "live.gateway", "live.store", "workload"),
        libraries=("pydantic", "websockets"),
    ),
    "cli": Package(
        holds="Options, input, output, progress: what the commands share.",
        may=("errors", "files", "inputs", "policies"),
        libraries=("rich", "typer"),
        lazily=("sim", "sweeps", "workload"),
    ),
    "cli.text": Package(
        holds="Results as text.",
        may=("frames", "live.demo", "live.demo.fleet", "sim", "whatif"),
        libraries=("rich", "typer"),
        lazily=("advice", "sweeps", "theory", "theory.diffusion", "theory.exact", "theory.fluid",
                "theory.stability"),
    ),
    "cli.commands": Package(
        holds="One module per subcommand: parse, call, print.",
        may=("cli", "errors", "files", "inputs", "policies"),
        libraries=("rich", "typer"),
        lazily=("advice", "cli.text", "live", "live.addresses", "live.agents.sidecar", "live.demo",
                "live.demo.fleet", "live.dispatcher", "live.envoy", "live.gateway", "live.picker", "paper",
                "paper.claims", "paper.experiments", "paper.report", "plots", "sim", "sweeps", "theory",
                "theory.diffusion", "theory.exact", "theory.fluid", "web", "whatif"),
    ),
    "cli.main": Package(
        holds="The `evenly` command and its exit codes.",
        may=("cli", "cli.commands", "errors", "__init__"),
        libraries=("typer",),
    ),
    "__init__": Package(holds="The public names of the package, loaded when first used.", may=("lazy",)),
    "__main__": Package(holds="`python -m evenly`.", lazily=("cli.main",)),
}  # fmt: skip

_LOADERS = ("lazy", "frames", "own_policy", "testing")  # packages that load modules by name


def problems() -> Iterator[str]:
    """Yield every import that the table does not allow, every cycle, and every permission that is not used."""
    used: set[tuple[str, str]] = set()
    for module in _modules():
        source = _file_of(module).read_text(encoding="utf-8")
        yield from (f"src/evenly/{module.replace('.', '/')}: {found}" for found in violations(module, source))
        if not _is_front_door(module):
            used |= {(package_of(module), _target(name)) for name, _ in _imports(ast.parse(source))}
    allowed = {name: {*each.may, *each.lazily} & PACKAGES.keys() for name, each in PACKAGES.items()}
    for name, others in allowed.items():
        yield from (
            f"tools/imports.py: {name} does not import {o}" for o in sorted(others) if (name, o) not in used
        )
    if cycle := find_cycle(allowed):
        yield f"tools/imports.py: a cycle: {' -> '.join(cycle)}"
    missing = PACKAGES.keys() - {package_of(module) for module in _modules()}
    yield from (f"tools/imports.py: there is no {name}" for name in sorted(missing))


def violations(module: str, source: str) -> list[str]:
    """Return what a module with this source may not do."""
    tree = ast.parse(source)
    found = [f"imports {name}" for name, lazy in _imports(tree) if not _is_allowed(module, name, lazy)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            found.append("has a relative import")
        if isinstance(node, ast.AsyncFunctionDef) and PACKAGES[package_of(module)].standard is not None:
            found.append(f"has a coroutine, {node.name}")
    return found


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return one cycle, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def package_of(module: str) -> str:
    """Return the package with the longest matching name; modules without one belong to `evenly` itself."""
    parts = module.split(".")
    fitting = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in fitting if name in PACKAGES), "__init__")


def _modules() -> list[str]:
    """Return dotted names below `evenly`. A package's `__init__` has the name of the package."""
    paths = (path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def _file_of(module: str) -> Path:
    path = SOURCE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _is_front_door(module: str) -> bool:
    inside = any(name.startswith(f"{module}.") for name in PACKAGES)
    return inside and len(ast.parse(_file_of(module).read_text(encoding="utf-8")).body) > 1


@cache
def _homes(package: str) -> dict[str, str]:
    """Return the names that a front door re-exports, with the modules that define them."""
    file = _file_of(package.partition(".")[2] or "__init__")
    stub = file.with_suffix(".pyi")
    tree = ast.parse((stub if stub.exists() else file).read_text(encoding="utf-8"))
    imported = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imported for alias in node.names}


def _target(name: str) -> str:
    """Return the package that defines an imported name of ours, following front doors."""
    package, _, last = name.rpartition(".")
    while package == "evenly" or _is_front_door(package.partition(".")[2]):
        home = _homes(package).get(last)
        if home is None or home == package:
            break
        package = home
    return package_of(f"{package}.{last}".partition(".")[2])


def _imports(tree: ast.AST, lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield imported names, and whether they are imported lazily: inside a function or for type checking."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from evenly.live import log` imports a module, `from evenly.errors import InputError` a name of one.
            yield from ((f"{node.module}.{alias.name}", lazy) for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            typed = not isinstance(node.test, ast.UnaryOp)
            yield from _imports(ast.Module(node.body, []), lazy or typed)
            yield from _imports(ast.Module(node.orelse, []), lazy or not typed)
        else:
            yield from _imports(node, lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _is_allowed(module: str, name: str, lazy: bool) -> bool:
    own = package_of(module)
    rules = PACKAGES[own]
    top = name.partition(".")[0]
    if name == "evenly.__version__":
        return "__init__" in rules.may
    if top == "evenly":
        target = _target(name)
        if _is_front_door(module):
            return target in {own, "lazy", *rules.may} or target.startswith(f"{module}.")
        return target == own or target in rules.may or (lazy and target in rules.lazily)
    if name == "importlib.import_module" and own not in _LOADERS:
        return False
    if top in sys.stdlib_module_names:
        return top in (rules.standard or {top})
    return top in rules.libraries or (lazy and top in rules.lazily)
