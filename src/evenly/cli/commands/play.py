"""`evenly play`."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from evenly.cli.options import option
from evenly.errors import InputError

EXAMPLE = "Example: evenly play; evenly play --export playground"

Listen = Annotated[
    str | None,
    option("The page", "Serve the page at this address (default: 127.0.0.1:8600).", "HOST:PORT"),
]
Export = Annotated[
    str | None,
    option("The page", "Write the page to this folder instead; its index.html needs no server.", "FOLDER"),
]


def command(listen: Listen = None, export: Export = None) -> None:
    """Open a playground for the browser: watch tasks being placed, change things, race the learner."""
    if export is not None:
        if listen is not None:
            raise InputError("Give listen or export, not both: an exported page needs no server.")
        _write(export)
    else:
        _serve("127.0.0.1:8600" if listen is None else listen)


def _write(folder: str) -> None:
    from evenly.files import atomic_write, ensure_folder
    from evenly.web.assets import Page
    from evenly.web.bundle import exported

    if not folder.strip():
        raise InputError(f"export must name a folder, not {folder!r}; for the current one, type --export .")
    root = ensure_folder(Path(folder))
    for path, body in exported(Page("playground")).items():
        ensure_folder((root / path).parent)
        with atomic_write(root / path) as temporary:
            temporary.write_bytes(body)
    typer.echo(f"wrote {root / 'index.html'}")


def _serve(listen: str) -> None:
    from evenly.live.addresses import Address, parse_address
    from evenly.live.listening import listening_socket
    from evenly.web.assets import Page
    from evenly.web.server import PageServer

    address = parse_address(listen, listening=True)
    with PageServer(Page("playground"), listening_socket(address)) as server:
        shown = Address(address.host, server.port)
        typer.echo(f"The playground is at http://{shown}/ (Ctrl-C stops it).")
        signal.signal(signal.SIGTERM, _stop)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def _stop(*_: object) -> None:
    raise KeyboardInterrupt
