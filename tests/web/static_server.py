"""A plain HTTP server for a page of `evenly.web`, for tests that need no other server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from evenly.web.assets import Page


@contextmanager
def serving(page: Page) -> Iterator[str]:
    """Serve the page on a free port while the block runs. Yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asset = page.get(self.path.partition("?")[0].removeprefix("/"))
            if asset is None:
                self.send_error(404)
                return
            self.send_response(200)
            for name, value in asset.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(asset.body)))
            self.end_headers()
            self.wfile.write(asset.body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
