"""The commands and their exit codes: bad input ends in one sentence and 2, Ctrl-C (Typer's doing) in 130."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from evenly import __version__
from evenly.cli.commands import (
    agent,
    compare,
    demo,
    diffusion,
    dispatcher,
    envoy_config,
    equilibrium,
    exact,
    fluid,
    gateway,
    paper,
    picker,
    play,
    simulate,
    sweep,
    tune,
    whatif,
)
from evenly.cli.refusals import with_options
from evenly.errors import InputError, PointFailedError, WorkerKilledError

BAD_INPUT = 2
FAILED = 3
_OUR_WORDS = re.compile(r"^Invalid value for '(--[a-z-]+)'(?: / '[^']+')*: it must ")
_LIVE = (  # of the extra `live`
    "fastapi", "hpack", "httptools", "pydantic", "redis", "uvicorn", "uvloop", "websockets",
)  # fmt: skip

app = typer.Typer(
    name="evenly",
    help="Keep long-lived concurrent work evenly spread over many servers, without being told the load.",
    epilog="Start with: evenly demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
app.command("simulate", epilog=simulate.EXAMPLE)(simulate.command)
app.command("compare", epilog=compare.EXAMPLE)(compare.command)
app.command("sweep", epilog=sweep.EXAMPLE)(sweep.command)
app.command("exact", epilog=exact.EXAMPLE)(exact.command)
app.command("fluid", epilog=fluid.EXAMPLE)(fluid.command)
app.command("tune", epilog=tune.EXAMPLE)(tune.command)
app.command("equilibrium", epilog=equilibrium.EXAMPLE)(equilibrium.command)
app.command("diffusion", epilog=diffusion.EXAMPLE)(diffusion.command)
app.command("whatif", epilog=whatif.EXAMPLE)(whatif.command)
app.command("paper", epilog=paper.EXAMPLE)(paper.command)
app.command("play", epilog=play.EXAMPLE)(play.command)
app.add_typer(demo.app, name="demo")
app.command("gateway", epilog=gateway.EXAMPLE)(gateway.command)
app.command("envoy-config", epilog=envoy_config.EXAMPLE)(envoy_config.command)
app.command("picker", epilog=picker.EXAMPLE)(picker.command)
app.command("dispatcher", epilog=dispatcher.EXAMPLE)(dispatcher.command)
app.command("agent", epilog=agent.EXAMPLE)(agent.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenly {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    try:
        code = app(arguments, standalone_mode=False)
    except InputError as error:
        return _complain(with_options(str(error), _options_of(arguments), arguments), BAD_INPUT)
    except typer.TyperException as error:
        return _complain(_sentence(getattr(error, "format_message", error.__str__)()), BAD_INPUT)
    except (PointFailedError, WorkerKilledError) as error:
        return _complain(str(error), FAILED)
    except ModuleNotFoundError as error:
        if error.name not in _LIVE:
            raise
        return _complain(
            f"The live balancer needs {error.name}: run pip install '.[live]' in a checkout of evenly.", BAD_INPUT
        )
    return code if isinstance(code, int) else 0


def _options_of(arguments: list[str]) -> dict[str, list[str]]:
    """Return the spellings of each option of the command that was called."""
    commands: Any = typer.main.get_command(app)
    command = next((commands.commands[word] for word in arguments if word in commands.commands), None)
    return {} if command is None else {parameter.name: parameter.opts for parameter in command.params}


def _sentence(message: str) -> str:
    """Return Typer's message as one line that ends like a sentence; empty if there is nothing to say."""
    line = _OUR_WORDS.sub(r"\1 must ", " ".join(message.split()))
    return line if not line or line.endswith((".", "?", "!")) else f"{line}."


def _complain(sentence: str, code: int) -> int:
    """Print the sentence on one line; a file name, say, can contain line breaks and terminal codes."""
    if sentence:
        typer.echo(f"evenly: {''.join(map(_printable, sentence))}", err=True)
    return code


def _printable(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
