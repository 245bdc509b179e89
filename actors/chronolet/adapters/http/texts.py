"""A request as it stands on the wire and in messages: pure pieces that both HTTP clients are made of.

Comes in: `ports.requests.Request`. Goes out: texts, and where a redirect leads. Next: `http_requests` (hooks),
`probes.http`. Answers to pkg/probe/http/request.go and Go's net/http, whose words the messages are.
"""

from __future__ import annotations

import os
import socket
from urllib.parse import urljoin, urlsplit

import msgspec

from chronolet.ports.pods.requests import Request

VERSION = "1.37"
"""Of the kubelet whose ways these are, as it calls itself to servers."""

MOST_REQUESTS = 10
"""Of one GET with all its redirects."""

REDIRECTS = (301, 302, 303, 307, 308)
NO_TLS = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""What OpenSSL says of a server that does not speak TLS."""

TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
TOO_MANY = f"stopped after {MOST_REQUESTS} redirects"


class BadLocation(ValueError):  # noqa: N818 - what a server said, foreseen
    """A redirect to what is no URL."""


def target(path: str) -> str:
    """What stands in the request line: blanks and what is not ASCII are escaped, a path begins with a slash."""
    try:
        parts = urlsplit(path)
        where, query = parts.path, parts.query
    except ValueError:  # too late to refuse it: it is sent as it stands, and the server's to judge
        where, query = path, ""
    where = where if where.startswith("/") else f"/{where}"
    text = f"{where}?{query}" if query else where
    return "".join(one if "!" <= one <= "~" else "".join(f"%{byte:02X}" for byte in one.encode()) for one in text)


def address(host: str, port: int) -> str:
    """Host and port, as a URL has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def url(request: Request) -> str:
    """The whole, without a path where none was asked for."""
    path = target(request.path) if request.path else ""
    return f"{request.scheme}://{address(request.host, request.port)}{path}"


def followed(request: Request, location: str) -> Request | None:
    """Where the answer sends to, if that is the same host; None where the answer stands as it is. `BadLocation` where
    it cannot be read.
    """
    try:
        there = urlsplit(urljoin(url(request), location))
        host, port = there.hostname, there.port or (443 if there.scheme == "https" else 80)
    except ValueError as error:
        raise BadLocation(f'failed to parse Location header "{location}": {error}') from error
    if not location or host != request.host.lower() or there.scheme not in ("http", "https"):
        return None
    path = f"{there.path or '/'}?{there.query}" if there.query else there.path or "/"
    return msgspec.structs.replace(request, scheme=there.scheme, port=port, path=path)


def failed(request: Request, why: str) -> str:
    """The line that says that there was no answer."""
    return f'Get "{url(request)}": {why}'


def dial_failed(host: str, port: int, error: OSError) -> str:
    """The line that says that there was no connection."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: {error.strerror}"
    return f"dial tcp {address(host, port)}: {_why(error)}"


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError) and error.errno is None:
        return "i/o timeout"
    said = os.strerror(error.errno) if error.errno else str(error)
    return f"connect: {said.lower()}"
