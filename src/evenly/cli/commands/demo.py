"""`evenly demo` and `evenly demo fleet`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from evenly.cli import live_options, options
from evenly.cli.output import emit
from evenly.cli.progress import progress_bar
from evenly.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evenly.live.demo.fleet.frame import FleetFrame
    from evenly.live.demo.fleet.plan import FleetPlan
    from evenly.live.demo.frame import Frame
    from evenly.live.demo.plan import Plan

F = TypeVar("F", "Frame", "FleetFrame")

EXAMPLE = "Example: evenly demo; evenly demo --serve; evenly demo --json > demo.json; evenly demo fleet"
FLEET_EXAMPLE = "Example: evenly demo fleet; evenly demo fleet --seconds 30 --json > fleet.json"

_LINE_INTERVAL_S = 5.0
_FAILED = 1
_TERMINATED = 143

_RUN = "The run"

Serve = Annotated[
    bool,
    typer.Option(
        "--serve",
        help="Keep running after the verdict, until Ctrl-C.",
        rich_help_panel=_RUN,
        show_default=False,
        metavar="",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        help="Total length of the three phases in seconds (default: 54). Below 30, the threshold may not settle.",
        parser=live_options.number_or_text,
        rich_help_panel=_RUN,
        show_default=False,
        metavar="X",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        help="On one machine, the same seed gives the same sessions (default: 1).",
        parser=live_options.whole_number_or_text,
        rich_help_panel=_RUN,
        show_default=False,
        metavar="N",
    ),
]
FleetSeconds = Annotated[
    float,
    typer.Option(
        help="Length of the run in seconds (default: 60). Below 30, the threshold may not settle.",
        parser=live_options.number_or_text,
        rich_help_panel=_RUN,
        show_default=False,
        metavar="X",
    ),
]


def command(
    context: typer.Context,
    serve: Serve = False,
    seconds: Seconds = 54.0,
    seed: Seed = 1,
    json: options.Json = None,
) -> None:
    """Run the live balancer on this machine for a minute: two Envoys, 20 pools and WebSocket sessions.

    The same sessions also go through Envoy's least_request (FULL_SCAN), and a verdict compares the two.

    Exit code 1 means that sessions failed or that nothing was measured.
    """
    if context.invoked_subcommand is not None:
        _check_no_options(context)
        return

    from evenly.live.demo.plan import Plan

    plan = Plan(seconds, seed)
    raise typer.Exit(_run(_demo(plan, serve, as_json=bool(json))))


def fleet(seconds: FleetSeconds = 60.0, seed: Seed = 1, json: options.Json = None) -> None:
    """Run a fleet on this machine for a minute: two dispatchers on one store, 20 pools with agents.

    Halfway, a dispatcher and two pools are killed. Some seconds later they come back.

    A verdict compares the balance with join-the-shortest-queue and with regular reports on the same visits.

    Exit code 1 means that visits were lost, that a killed part did not come back or that not all was measured.
    """
    from evenly.live.demo.fleet.plan import FleetPlan

    plan = FleetPlan(seconds, seed)
    raise typer.Exit(_run(_fleet(plan, as_json=bool(json))))


def _check_no_options(context: typer.Context) -> None:
    """Reject options before the subcommand: they would have no effect."""
    sources = map(context.get_parameter_source, context.params)
    if any(source is not None and source.name == "COMMANDLINE" for source in sources):
        raise InputError(f"Give the options of evenly demo {context.invoked_subcommand} after its name.")


def _run(work: Coroutine[Any, Any, int]) -> int:
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:  # SIGTERM
        return _TERMINATED


def _end_with_sigterm() -> None:
    """Cancel the running task at SIGTERM, so that all processes end."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def _fleet(plan: FleetPlan, *, as_json: bool) -> int:
    """Run the demo of a fleet and return the exit code. All processes end with the block, whatever happens."""
    from evenly.cli.text import fleet as show_fleet
    from evenly.live.demo.fleet.run import FleetRun
    from evenly.live.demo.fleet.stack import fleet_stack

    _end_with_sigterm()
    async with AsyncExitStack() as stack:
        with progress_bar("starting"):
            running = await stack.enter_async_context(fleet_stack())
        with _shown(as_json, show_fleet.heading_line(), show_fleet.line, show_fleet.screen) as show:
            report = await FleetRun(running, plan, show).measure()
    if report is None:
        typer.echo("evenly: Nothing was measured, because no dispatcher answered.", err=True)
        return _FAILED
    emit(report.to_dict, lambda: typer.echo(show_fleet.report_text(report)), as_json=as_json, files=[])
    return 0 if report.complete else _FAILED


async def _demo(plan: Plan, serve: bool, *, as_json: bool) -> int:
    """Run the demo and return the exit code. All processes end with the block, whatever happens."""
    from evenly.cli.text import demo as show_demo
    from evenly.live.demo.run import Run, keep_running
    from evenly.live.demo.stack import demo_stack

    _end_with_sigterm()
    async with AsyncExitStack() as stack:
        with progress_bar("starting"):
            running = await stack.enter_async_context(demo_stack())
        typer.echo(show_demo.dashboard_line(running.dashboard), err=as_json)
        with _shown(as_json, show_demo.heading_line(), show_demo.line, show_demo.screen) as show:
            report = await Run(running, plan, show).measure()
        if report is None:
            typer.echo("evenly: Nothing was measured, because the picker did not answer.", err=True)
            return _FAILED
        emit(report.to_dict, lambda: typer.echo(show_demo.report_text(report)), as_json=as_json, files=[])
        if serve:
            typer.echo(show_demo.serving_text(running), err=as_json)
            await _until_interrupted(keep_running(running, plan))
    return _FAILED if report.failed else 0


@contextmanager
def _shown(
    as_json: bool,
    heading: str,
    line: Callable[[F], str],
    screen: Callable[[F, int, int], RenderableType],
) -> Iterator[Callable[[F], None]]:
    """Yield a function that shows a frame: as a screen in a capable terminal, else as a line every 5 seconds."""
    from rich.console import Console
    from rich.live import Live

    from evenly.cli.text import demo as show_demo

    console = Console()
    if as_json:
        with progress_bar("playing") as progress:
            yield lambda frame: progress(frame.time / frame.seconds)
    elif show_demo.screen_fits(console):
        with Live(console=console, screen=True, auto_refresh=False) as live:
            yield show_demo.painter(console, lambda drawn: live.update(drawn, refresh=True), screen)
    else:
        typer.echo(heading)
        yield _print_lines(line)
        typer.echo()


def _print_lines(line: Callable[[F], str]) -> Callable[[F], None]:
    due = _LINE_INTERVAL_S

    def show(frame: F) -> None:
        nonlocal due
        if frame.time >= due:
            typer.echo(line(frame))
            due += _LINE_INTERVAL_S

    return show


async def _until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Run until Ctrl-C, which is its normal end."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()  # it never ends by itself: this raises its error


app = typer.Typer(no_args_is_help=False)
app.callback(invoke_without_command=True, epilog=EXAMPLE)(command)
app.command("fleet", epilog=FLEET_EXAMPLE)(fleet)
