"""The watch over a running Envoy: is it there for new clients?

Envoy can stop listening and stay alive, for example after `POST /drain_listeners`. It never listens again, and its
own `/ready` and `/listeners` still show no problem. So the watch asks for the number of listeners that it stopped.
The kernel cannot tell: the socket is the supervisor's too. No probe takes a client's connection, so a gateway with
all its connections in use is not mistaken for a deaf one.
"""

from __future__ import annotations

from evenly.live.envoy.process import EnvoyProcess
from evenly.live.gateway_folder import GatewayFolder
from evenly.live.log import Log
from evenly.live.timing import Timing


class EnvoyWatch:
    """Probes Envoy, tells the picker the result, and kills an Envoy that cannot serve new clients.

    The supervisor restarts it.
    """

    def __init__(self, envoy: EnvoyProcess, folder: GatewayFolder, log: Log, timing: Timing) -> None:
        self._timing = timing
        self._envoy = envoy
        self._folder = folder
        self._log = log
        self._silent = 0  # probes in a row without a response

    async def probe(self) -> None:
        """Look once. Call this every `probe_s` seconds."""
        stopped = await self._envoy.stopped_listening()
        responds = await self._envoy.responds()
        if not self._envoy.ready:  # it is dead or starting, which the supervisor knows
            self._silent = 0
            self._folder.set_accepting(False)
        elif not responds:
            self._hangs()
        elif stopped and await self._envoy.stopped_listening():  # the first look may have been at a dying Envoy
            self._kill("not listening")
        else:
            self._is_well()

    def _is_well(self) -> None:
        if self._silent >= self._timing.probes_until_not_ready:
            self._log.event("envoy responds")
        self._silent = 0
        self._folder.set_accepting(True)

    def _hangs(self) -> None:
        self._silent += 1
        if self._silent >= self._timing.probes_until_killed:
            self._kill("not responding")
        elif self._silent == self._timing.probes_until_not_ready:
            self._folder.set_accepting(False)
            self._log.event("envoy silent")

    def _kill(self, reason: str) -> None:
        """Kill Envoy. Its open sessions end: Envoy has no command to listen again."""
        self._silent = 0
        self._folder.set_accepting(False)
        self._log.event("envoy killed", reason=reason)
        self._envoy.kill()
