"""Where a gateway keeps what operators change at its admin port, so that it survives a restart of the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evenly.errors import InputError
from evenly.files import check_writable, ensure_folder
from evenly.live.addresses import Address
from evenly.live.log import Log
from evenly.live.picker.state_file import load

_PRIVATE = 0o700  # mode of the folder: it names pools


def check_state_file(path: Path) -> None:
    """Reject a file that cannot be written, or that has something else in it."""
    check_writable(path)
    load(path)


def lasting_file(given: Path | None, listen: Address, environment: Mapping[str, str], log: Log) -> Path | None:
    """Return the state file of the gateway that is told to listen at this address.

    That is the `given` one, or one that is named after the address. A gateway at port 0 has no such name, and no
    file. Nor has one whose folder cannot be written, which is logged.
    """
    if given is not None or listen.port == 0:
        return given
    try:
        path = ensure_folder(_state_folder(environment), mode=_PRIVATE) / _name(listen)
        check_writable(path)
    except InputError as error:
        log.event("changes will be forgotten", reason=str(error))
        return None
    return path


def _state_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that systemd made for the unit (`StateDirectory=`), else the user's, by the XDG rules."""
    of_unit = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if of_unit:
        return Path(of_unit)
    of_user = Path(environment.get("XDG_STATE_HOME", ""))
    if of_user.is_absolute():
        return of_user / "evenly"
    try:
        return Path.home() / ".local" / "state" / "evenly"
    except RuntimeError:
        raise InputError("The user has no home directory, and XDG_STATE_HOME is not set.") from None


def _name(listen: Address) -> str:
    """Return a name without colons, which other programs take for the end of a host or a folder."""
    return f"gateway-{listen.host.replace(':', '_')}-{listen.port}.json"
