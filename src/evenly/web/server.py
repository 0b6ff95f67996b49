"""A web server for one page of static files, with the standard library alone."""

from __future__ import annotations

import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from evenly.web.assets import Page

_IDLE_S = 30  # for a connection without requests


class PageServer(ThreadingHTTPServer):
    """Serves a page on a socket that listens already."""

    daemon_threads = True

    def __init__(self, page: Page, listening: socket.socket) -> None:
        self.page = page
        super().__init__(listening.getsockname()[:2], _Handler, bind_and_activate=False)
        self.socket.close()  # the one that it made itself
        self.socket = listening

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.socket.getsockname()[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    server: PageServer

    def do_GET(self) -> None:
        """Send a file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Send the headers of a file."""
        self._answer(with_body=False)

    def version_string(self) -> str:
        """Name the server, without versions."""
        return "evenly"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a page with thirty files would fill the terminal."""

    def _answer(self, *, with_body: bool) -> None:
        asset = self.server.page.get(self.path.partition("?")[0].removeprefix("/"))
        if asset is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        known = asset.is_known_to(self.headers.get("If-None-Match", ""))
        self.send_response(HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK)
        for name, value in asset.headers.items():
            self.send_header(name, value)
        if not known:
            self.send_header("Content-Length", str(len(asset.body)))
        self.end_headers()
        if with_body and not known:
            self.wfile.write(asset.body)
