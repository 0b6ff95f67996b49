"""How much memory and how many files each process of a gateway may use: derived here, and only here.

A gateway gets a limit of open files, and everything else follows from it. The bounds hold at every moment of a
step, not only after it: memory is sampled during the attack.
"""

from __future__ import annotations

from collections.abc import Mapping

from chaos.gateway import ENVOY, PICKER, SUPERVISOR
from chaos.processes import Usage

MIB = 2**20
FILES_PER_SESSION = 2  # in Envoy: one connection from the client, one to the pool

# Envoy: about 70 MiB without sessions. An open session costs about 75 KiB in two files. Bodies that are kept for a
# retry have a budget of their own, however many requests wait.
_ENVOY_BASE = 150 * MIB
_ENVOY_RETRIES = 512 * MIB
_ENVOY_PER_FILE = 3 * 2**14
# The picker: about 60 MiB of Python and libraries. An open session costs about half a KiB, and during
# attacks, headers and streams come on top.
_PICKER_BASE = 120 * MIB
_PICKER_PER_SESSION = 2**13
_PICKER_FILES = 384  # the admin port accepts 256 connections; the rest is Envoy's
# The supervisor carries no traffic: nothing may grow.
_SUPERVISOR = Usage(80 * MIB, 64)
_FILES_SHARE = 0.97  # of Envoy's limit: at the limit, it fails
# After a step, only innocents remain, and what Envoy keeps open to pools for up to 4 s.
_SPARE_FILES = 300


def peaks(files: int) -> dict[str, Usage]:
    """Return the bounds for each process during a step, with this limit of open files."""
    sessions = files // FILES_PER_SESSION
    return {
        ENVOY: Usage(_ENVOY_BASE + _ENVOY_RETRIES + files * _ENVOY_PER_FILE, int(_FILES_SHARE * files)),
        PICKER: Usage(_PICKER_BASE + sessions * _PICKER_PER_SESSION, _PICKER_FILES),
        SUPERVISOR: _SUPERVISOR,
    }


def files_after(innocents: int) -> int:
    """Return how many files Envoy may have open once the attackers are gone."""
    return FILES_PER_SESSION * innocents + _SPARE_FILES


def beyond(seen: Mapping[str, Usage], bounds: Mapping[str, Usage]) -> list[str]:
    """Return a sentence for each bound that was exceeded."""
    found = []
    for part, most in bounds.items():
        used = seen.get(part, Usage())
        if used.memory > most.memory:
            found.append(f"{part} used {used.memory / MIB:.0f} MiB, more than {most.memory / MIB:.0f} MiB")
        if used.files > most.files:
            found.append(f"{part} had {used.files} files open, more than {most.files}")
    return found
