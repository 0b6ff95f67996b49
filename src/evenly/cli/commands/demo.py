"""`evenly demo`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenly.cli import live_options, options
from evenly.cli.output import emit
from evenly.cli.progress import progress_bar

if TYPE_CHECKING:
    from evenly.live.demo.frame import Frame
    from evenly.live.demo.plan import Plan

EXAMPLE = "Example: evenly demo; evenly demo --serve; evenly demo --json > demo.json"

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
        help="The same seed gives the same sessions (default: 1).",
        parser=live_options.whole_number_or_text,
        rich_help_panel=_RUN,
        show_default=False,
        metavar="N",
    ),
]


def command(
    serve: Serve = False,
    seconds: Seconds = 54.0,
    seed: Seed = 1,
    json: options.Json = None,
) -> None:
    """Run the live balancer on this machine for a minute: Envoy, 20 pools and WebSocket sessions.

    The same sessions also go through Envoy's own balancer, and a verdict compares the two.

    Exit code 1 means that sessions failed or that nothing was measured.
    """
    from evenly.live.demo.plan import Plan

    plan = Plan(seconds, seed)
    try:
        code = asyncio.run(_demo(plan, serve, as_json=bool(json)))
    except asyncio.CancelledError:  # SIGTERM
        code = _TERMINATED
    raise typer.Exit(code)


async def _demo(plan: Plan, serve: bool, *, as_json: bool) -> int:
    """Run the demo and return the exit code. All processes end with the block, whatever happens."""
    from evenly.cli.text import demo as show_demo
    from evenly.live.demo.run import Run, keep_running
    from evenly.live.demo.stack import demo_stack

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with AsyncExitStack() as stack:
        with progress_bar("starting"):
            running = await stack.enter_async_context(demo_stack())
        with _shown(as_json) as show:
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
def _shown(as_json: bool) -> Iterator[Callable[[Frame], None]]:
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
            yield show_demo.painter(console, lambda screen: live.update(screen, refresh=True))
    else:
        typer.echo(show_demo.heading_line())
        yield _print_lines(show_demo.line)
        typer.echo()


def _print_lines(line: Callable[[Frame], str]) -> Callable[[Frame], None]:
    due = _LINE_INTERVAL_S

    def show(frame: Frame) -> None:
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
