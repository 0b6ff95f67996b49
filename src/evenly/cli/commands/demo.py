"""`evenly demo`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenly.cli import options
from evenly.cli.output import emit
from evenly.cli.progress import progress_bar

if TYPE_CHECKING:
    from evenly.live.demo.frame import View
    from evenly.live.demo.plan import Plan

EXAMPLE = "Example: evenly demo; evenly demo --serve; evenly demo --json > demo.json"

_LINE_EVERY = 5.0  # seconds
_FAILED = 1
_TERMINATED = 143

_RUN = "The run"

Serve = Annotated[
    bool,
    typer.Option(
        "--serve",
        help="Go on after the verdict until Ctrl-C, to look around.",
        rich_help_panel=_RUN,
        show_default=False,
        metavar="",
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        help="How long the three loads last together; from 30 on they settle (default: 54).",
        rich_help_panel=_RUN,
        show_default=False,
        metavar="X",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        help="The same seed gives the same sessions (default: 1).",
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
    """Watch the live balancer at work on this machine: Envoy, 20 pools, and a minute of WebSocket sessions.

    The same sessions go through Envoy's own balancer beside it, and at the end there is a verdict.

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
    """The exit code. Whatever happens, all processes end with the block."""
    from evenly.cli.text import demo as show_demo
    from evenly.live.demo.run import Run, encore
    from evenly.live.demo.stack import raised_stage

    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with AsyncExitStack() as stack:
        with progress_bar("starting"):
            stage = await stack.enter_async_context(raised_stage())
        with _shown(as_json) as show:
            report = await Run(stage, plan, show).perform()
        if report is None:
            typer.echo("evenly: Nothing was measured, because the picker did not answer.", err=True)
            return _FAILED
        emit(report.to_dict, lambda: typer.echo(show_demo.report_text(report)), as_json=as_json, files=[])
        if serve:
            typer.echo(show_demo.serving_text(stage), err=as_json)
            await _until_interrupted(encore(stage, plan))
    return _FAILED if report.failed else 0


@contextmanager
def _shown(as_json: bool) -> Iterator[Callable[[View], None]]:
    """Yields what shows a moment: as a picture where there is a terminal for it, else in a line now and then."""
    from rich.console import Console
    from rich.live import Live

    from evenly.cli.text import demo as show_demo

    console = Console()
    if as_json:
        with progress_bar("playing") as progress:
            yield lambda view: progress(view.time / view.seconds)
    elif show_demo.picture_fits(console):
        with Live(console=console, screen=True, auto_refresh=False) as live:
            yield show_demo.painter(console, lambda frame: live.update(frame, refresh=True))
    else:
        typer.echo(show_demo.heading_line())
        yield _print_now_and_then(show_demo.line)
        typer.echo()


def _print_now_and_then(line: Callable[[View], str]) -> Callable[[View], None]:
    due = _LINE_EVERY

    def show(view: View) -> None:
        nonlocal due
        if view.time >= due:
            typer.echo(line(view))
            due += _LINE_EVERY

    return show


async def _until_interrupted(work: Coroutine[Any, Any, None]) -> None:
    """Let it go on until Ctrl-C, which is how it should end."""
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()  # it never ends by itself: this raises what went wrong
