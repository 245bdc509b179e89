"""The texts of HTTP requests, URLs and error messages. Pure; shared by both HTTP clients.

Input: `ports.pods.requests.Request`. Output: texts, and the request that follows a redirect. Next: `requests` (hooks),
`probes.handlers`. Corresponds to pkg/probe/http/request.go and to Go's net/http, whose error messages are used.
"""

from __future__ import annotations

import os
import socket
from urllib.parse import urljoin, urlsplit

import msgspec

from chronolet.ports.pods.requests import Request

VERSION = "1.37"
"""Version of the kubelet whose behaviour the agent follows, as sent in User-Agent."""

MOST_REQUESTS = 10
"""Maximum number of requests for one GET, including redirects."""

REDIRECTS = (301, 302, 303, 307, 308)
NO_TLS = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""OpenSSL reason codes which mean that the server does not speak TLS."""

TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
TOO_MANY = f"stopped after {MOST_REQUESTS} redirects"


class BadLocation(ValueError):  # noqa: N818 - an expected server error
    """A redirect to an invalid URL."""


def target(path: str) -> str:
    """Return the path for the request line: with a leading slash, and with spaces and non-ASCII characters escaped."""
    try:
        parts = urlsplit(path)
        where, query = parts.path, parts.query
    except ValueError:  # too late to refuse the path: send it unsplit and let the server decide
        where, query = path, ""
    where = where if where.startswith("/") else f"/{where}"
    text = f"{where}?{query}" if query else where
    return "".join(one if "!" <= one <= "~" else "".join(f"%{byte:02X}" for byte in one.encode()) for one in text)


def address(host: str, port: int) -> str:
    """Return host and port in the form that URLs use."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def url(request: Request) -> str:
    """Return the full URL; it has no path if none was requested."""
    path = target(request.path) if request.path else ""
    return f"{request.scheme}://{address(request.host, request.port)}{path}"


def followed(request: Request, location: str) -> Request | None:
    """Return the request that follows a redirect on the same host; None if this response is final. Raises `BadLocation`
    if the location is invalid.
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
    """Return the error message for a failed request; `why` is the reason."""
    return f'Get "{url(request)}": {why}'


def dial_failed(host: str, port: int, error: OSError) -> str:
    """Return the error message for a failed connection."""
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {host}: {error.strerror}"
    return f"dial tcp {address(host, port)}: {_why(error)}"


def _why(error: OSError) -> str:
    if isinstance(error, TimeoutError) and error.errno is None:
        return "i/o timeout"
    text = os.strerror(error.errno) if error.errno else str(error)
    return f"connect: {text.lower()}"
