"""The files of a page, ready to be served: content types, caching and security headers.

A page is a folder of `evenly.web` with an `index.html`. It is served at `/`, and names every other file by its
path below `web/`, such as `web/common/base.css`, relative to itself. So the same files also work when they are
copied to a folder (`Page.files`).

When served, `web/` becomes `web/DIGEST/`, with a digest of all files of the page: a file of this URL never changes
and may be cached forever. Modules import each other by relative paths, so they keep the digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
SECURITY_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
PREFIX = "web/"
SHARED = ("common", "vendor")
_FOREVER = "public, max-age=31536000, immutable"
_ASK_EVERY_TIME = "no-cache"
_REFERENCE = re.compile(rb'(?<=[="])' + re.escape(PREFIX.encode()))
_DIGEST_LENGTH = 16  # hex digits: enough to tell releases apart


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """A file as it is served."""

    body: bytes
    etag: str
    headers: Mapping[str, str]

    def is_known_to(self, if_none_match: str) -> bool:
        """Return whether a header `If-None-Match` has this version, so that 304 is the answer."""
        return any(tag.strip().removeprefix("W/") in {self.etag, "*"} for tag in if_none_match.split(","))


class Page:
    """A page with the files that it needs: those of its own folder, and the shared ones.

    All files are read when the first one is needed. They are small, and a release that is replaced while it runs
    stays consistent.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The contents of all files, by their path relative to the page: `index.html`, `web/common/base.css`."""
        found = {
            f"{PREFIX}{path}": body
            for folder in (*SHARED, self.name)
            for path, body in _files_below(files("evenly.web").joinpath(folder), folder)
        }
        return {"index.html": found.pop(f"{PREFIX}{self.name}/index.html"), **found}

    @cached_property
    def digest(self) -> str:
        """A digest of all files."""
        content = hashlib.sha256()
        for path, body in sorted(self.files.items()):
            content.update(f"{path}\0{len(body)}\0".encode() + body)
        return content.hexdigest()[:_DIGEST_LENGTH]

    def get(self, path: str) -> Asset | None:
        """Return what is served at a path, without its first slash; None if there is nothing."""
        return self._assets.get(path)

    @cached_property
    def _assets(self) -> dict[str, Asset]:
        versioned = f"{PREFIX}{self.digest}/"
        served = {path.replace(PREFIX, versioned, 1): _asset(path, body) for path, body in self.files.items()}
        index = _REFERENCE.sub(versioned.encode(), self.files["index.html"])
        del served["index.html"]
        return {"": _asset("index.html", index, caching=_ASK_EVERY_TIME), **served}


def _files_below(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            yield from _files_below(entry, path)
        elif _suffix(path) in CONTENT_TYPES:
            yield path, entry.read_bytes()


def _asset(path: str, body: bytes, *, caching: str = _FOREVER) -> Asset:
    etag = f'"{hashlib.sha256(body).hexdigest()[:_DIGEST_LENGTH]}"'
    headers = {"Content-Type": CONTENT_TYPES[_suffix(path)], "Cache-Control": caching, "ETag": etag}
    return Asset(body=body, etag=etag, headers={**headers, **SECURITY_HEADERS})


def _suffix(path: str) -> str:
    return path[path.rfind(".") :]
