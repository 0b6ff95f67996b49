"""Real Envoy, HAProxy and nginx in front of one real pool, each with its access log in a file."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenly.live.envoy.process import find_envoy
from evenly.logs.nginx import LOG_FORMAT
from tests.live.clients import Session
from tests.live.processes import PATIENCE, Process, eventually, free_port
from tests.live.rig import PoolProcess
from tests.needs import needs

HELD_S = 2.0  # how long a WebSocket is open
ANSWER_S = 1.0  # how long a slow answer takes
FLUSH = "0.1s"
COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent"'
)
_TYPE = "type.googleapis.com/envoy.extensions"
_JSON = {
    "start_time": "%START_TIME%",
    "duration": "%DURATION%",
    "upstream_host": "%UPSTREAM_HOST%",
    "stream_id": "%STREAM_ID%",
    "access_log_type": "%ACCESS_LOG_TYPE%",
}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a client saw, by its clock: when it asked, and when it was served."""

    asked: float
    served: float


@dataclass(kw_only=True)
class Written:
    """The logs by name, what the clients of each saw, and the address of the pool."""

    pool: str
    logs: dict[str, Path] = field(default_factory=dict)
    websockets: dict[str, Seen] = field(default_factory=dict)
    answers: dict[str, Seen] = field(default_factory=dict)
    ended: float = 0.0


def envoy_config(folder: Path, ports: dict[str, int], pool: int) -> dict[str, Any]:
    flush = {"access_log_flush_interval": FLUSH, "flush_access_log_on_new_request": True}
    listeners = [
        _listener(ports["envoy"], _http(_file(folder / "envoy.log"))),
        _listener(ports["envoy-flush"], _http(_file(folder / "envoy-flush.log"), access_log_options=flush)),
        _listener(ports["envoy-json"], _http(_file(folder / "envoy-json.log", _JSON), access_log_options=flush)),
        _listener(
            ports["envoy-tcp"],
            {
                "@type": f"{_TYPE}.filters.network.tcp_proxy.v3.TcpProxy",
                "stat_prefix": "tcp",
                "cluster": "pool",
                "access_log": [_file(folder / "envoy-tcp.log")],
            },
        ),
    ]
    endpoint = {"endpoint": {"address": _address(pool)}}
    cluster = {
        "name": "pool",
        "type": "STATIC",
        "load_assignment": {"cluster_name": "pool", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    return {"static_resources": {"listeners": listeners, "clusters": [cluster]}}


def _address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _listener(port: int, filter_config: dict[str, Any]) -> dict[str, Any]:
    chain = {"filters": [{"name": "filter", "typed_config": filter_config}]}
    return {"name": str(port), "address": _address(port), "filter_chains": [chain]}


def _file(path: Path, fields: dict[str, str] | None = None) -> dict[str, Any]:
    config: dict[str, Any] = {"@type": f"{_TYPE}.access_loggers.file.v3.FileAccessLog", "path": str(path)}
    if fields is not None:
        config["log_format"] = {"json_format": fields}
    return {"name": "file", "typed_config": config}


def _http(log: dict[str, Any], **more: object) -> dict[str, Any]:
    routes = [
        {"match": {"prefix": "/none"}, "direct_response": {"status": 404}},
        {"match": {"prefix": "/"}, "route": {"cluster": "pool", "timeout": "0s"}},
    ]
    router = {"name": "router", "typed_config": {"@type": f"{_TYPE}.filters.http.router.v3.Router"}}
    return {
        "@type": f"{_TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "http",
        "upgrade_configs": [{"upgrade_type": "websocket"}],
        "access_log": [log],
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        "http_filters": [router],
        **more,
    }


def haproxy_config(folder: Path, ports: dict[str, int], pool: int) -> str:
    return f"""
global
  log stdout format raw local0
  stats socket {folder}/haproxy.sock
defaults
  log global
  timeout connect 60s
  timeout client 60s
  timeout server 60s
frontend web
  mode http
  option httplog
  bind 127.0.0.1:{ports["haproxy"]}
  http-request return status 404 if {{ path_beg /none }}
  default_backend chat
backend chat
  mode http
  server s1 127.0.0.1:{pool}
frontend early
  mode http
  option httplog
  option logasap
  bind 127.0.0.1:{ports["haproxy-asap"]}
  default_backend chat
frontend raw
  mode tcp
  option tcplog
  bind 127.0.0.1:{ports["haproxy-tcp"]}
  default_backend bytes
backend bytes
  mode tcp
  server s1 127.0.0.1:{pool}
"""


def nginx_config(folder: Path, ports: dict[str, int], pool: int) -> str:
    scratch = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    fields = '{"msec":$msec,"request_time":$request_time,"upstream_addr":"$upstream_addr"}'
    return f"""
daemon off; master_process off; user root; pid {folder}/nginx.pid; error_log {folder}/nginx-error.log;
events {{ }}
http {{
  {LOG_FORMAT}
  log_format as_json escape=json '{fields}';
  access_log {folder}/nginx.log evenly;
  access_log {folder}/nginx-json.log as_json;
  access_log {folder}/nginx-combined.log combined;
  log_format timed '{COMBINED} $request_time $upstream_response_time';
  log_format keyed '{COMBINED} "$http_x_forwarded_for" rt=$request_time urt=$upstream_response_time '
                   'ups=$upstream_addr';
  access_log {folder}/nginx-timed.log timed;
  access_log {folder}/nginx-keyed.log keyed;
  {scratch}
  map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
  server {{
    listen 127.0.0.1:{ports["nginx"]};
    location /none {{ return 404; }}
    location / {{
      proxy_pass http://127.0.0.1:{pool};
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
    }}
  }}
}}
"""


@contextmanager
def proxies(folder: Path) -> Iterator[tuple[dict[str, int], PoolProcess, Process]]:
    """Run the three; yield their ports by the name of the log, the pool, and HAProxy, which logs to its output."""
    names = (
        *("envoy", "envoy-flush", "envoy-json", "envoy-tcp"),
        *("haproxy", "haproxy-asap", "haproxy-tcp", "nginx"),
    )
    ports = {name: free_port() for name in names}
    with ExitStack() as stack:
        pool = stack.enter_context(PoolProcess())
        pool.wait()
        port = pool.port
        (folder / "envoy.json").write_text(json.dumps(envoy_config(folder, ports, port)))
        (folder / "haproxy.cfg").write_text(haproxy_config(folder, ports, port))
        (folder / "nginx.conf").write_text(nginx_config(folder, ports, port))
        quiet = ("--disable-hot-restart", "--log-level", "error", "--concurrency", "1")
        envoy = (str(find_envoy()), "-c", str(folder / "envoy.json"), *quiet)
        # Its times have no offset; we read them as UTC.
        haproxy = ("env", "TZ=UTC", needs("haproxy"), "-db", "-f", str(folder / "haproxy.cfg"))
        nginx = (needs("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"))
        running = [stack.enter_context(Process(*command)) for command in (envoy, haproxy, nginx)]
        for name in ("envoy", "haproxy", "nginx"):
            eventually(lambda name=name: _listens(ports[name]), bool)  # type: ignore[misc]
        yield ports, pool, running[1]
        for process in running:  # they write what is left
            process.kill(signal.SIGTERM)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except OSError:
        return False
    return True


def write_logs(folder: Path) -> Written:
    """Send the same sessions through all of them: a WebSocket, a slow answer, and one that reaches no server."""
    with proxies(folder) as (ports, pool, haproxy):
        written = Written(pool=pool.address)
        threads = [
            threading.Thread(target=_use, args=(name, port, written, folder), daemon=True)
            for name, port in ports.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(written.websockets) == len(ports), written
        eventually(lambda: pool.sessions, lambda sessions: sessions == 0)
        eventually((folder / "nginx.log").read_text, lambda text: text.count("\n") == 3)
        # Three and the connection that tried whether it listens, one early, one of TCP.
        text = eventually(haproxy.output, lambda text: text.count("\n") == 6)
        for name, frontend in (("haproxy", "web"), ("haproxy-asap", "early"), ("haproxy-tcp", "raw")):
            lines = [line for line in text.splitlines(keepends=True) if f"] {frontend} " in line]
            (folder / f"{name}.log").write_text("".join(lines))
    written.ended = time.time()
    written.logs = {path.stem: path for path in folder.glob("*.log")}
    return written


def _use(name: str, port: int, written: Written, folder: Path) -> None:
    asked = time.time()
    session = Session(port).wait()
    served = time.time()
    if name.startswith("haproxy"):
        begun = _haproxy_seconds(folder)
        eventually(lambda: _haproxy_seconds(folder), lambda now: now > begun + HELD_S)  # whole seconds
    else:
        time.sleep(HELD_S)
    session.close()
    if not name.endswith(("-tcp", "-asap")):
        written.answers[name] = _get(port, f"/?seconds={ANSWER_S}")
        _get(port, "/none")
    written.websockets[name] = Seen(asked=asked, served=served)


def _haproxy_seconds(folder: Path) -> int:
    """Return HAProxy's age by its own clock, which stops while a busy machine keeps it from running."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(folder / "haproxy.sock"))
        connection.sendall(b"show info\n")
        with connection.makefile() as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("Uptime_sec:"))


def _get(port: int, path: str) -> Seen:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    asked = time.time()
    connection.request("GET", path)
    connection.getresponse().read()
    served = time.time()
    connection.close()
    return Seen(asked=asked, served=served)
