"""A real DNS server on loopback: Debian's unbound, with a zone whose records the tests change."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.live.processes import Process, eventually, free_port
from tests.needs import needs

_CONFIG = """
server:
  directory: "{folder}"
  interface: 127.0.0.1@{port}
  do-daemonize: no
  use-syslog: no
  logfile: ""
  username: ""
  chroot: ""
  pidfile: ""
  num-threads: 1
  module-config: "iterator"
  access-control: 127.0.0.0/8 allow
  do-tcp: {tcp}
  minimal-responses: {minimal}
  do-not-query-localhost: yes
  local-zone: "." refuse
  local-zone: "test." transparent
remote-control:
  control-enable: yes
  control-use-cert: no
  control-interface: "{folder}/control"
auth-zone:
  name: "test"
  zonefile: "test.zone"
  for-downstream: yes
  for-upstream: no
  fallback-enabled: no
"""
_START = "@ 60 IN SOA ns.test. admin.test. 1 60 60 60 1\n@ 60 IN NS ns.test.\nns 60 IN A 127.0.0.1\n"


class DnsServer(Process):
    """unbound, on the same port at every start. It knows the zone `test` and nothing else.

    Unless it is `minimal`, answers with SRV records bring the addresses of their targets along.
    """

    def __init__(self, folder: Path, *, tcp: bool = True, minimal: bool = True, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self.address = f"127.0.0.1:{self.port}"
        self._folder = folder
        self._tcp = tcp
        config = folder / "unbound.conf"
        yes = {True: "yes", False: "no"}
        config.write_text(_CONFIG.format(folder=folder, port=self.port, tcp=yes[tcp], minimal=yes[minimal]))
        (folder / "test.zone").write_text(_START)
        super().__init__(needs("unbound"), "-c", str(config))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        super().start()
        if self._tcp:
            eventually(self._listens, bool)
        eventually(self._controlled, bool)

    def publish(self, *records: str) -> None:
        """Replace the zone: records as in a zone file, such as `web 1 IN A 127.0.0.1`."""
        self.write(records)
        self._control("auth_zone_reload", "test")

    def write(self, records: Sequence[str]) -> None:
        """Replace the zone file, which the next start reads."""
        (self._folder / "test.zone").write_text(_START + "".join(f"{record}\n" for record in records))

    def _control(self, *words: str) -> bool:
        command = (needs("unbound-control"), "-c", str(self._folder / "unbound.conf"), *words)
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _controlled(self) -> bool:
        return self._control("status")

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True
