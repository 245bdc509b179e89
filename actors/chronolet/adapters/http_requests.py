"""HTTP requests to pods, as the kubelet makes them for lifecycle hooks.

Comes in: a request. Goes out: the status of its answer. Next: a pod's network. Answers to
pkg/kubelet/lifecycle/handlers.go (runHTTPHandler), pkg/probe/http/request.go.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
import time
from contextlib import closing
from typing import cast
from urllib.parse import urljoin, urlsplit

import msgspec

from chronolet.adapters.readable import readable
from chronolet.ports.requests import Request, RequestFailed

USER_AGENT = "kube-lifecycle/1.37"

_MOST_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_CONNECT_SECONDS = 30.0
_HEAD_SECONDS = 30.0  # from the first byte of an answer to the end of its head
_SLICE_SECONDS = 0.5
_NO_TLS = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
_TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class HttpRequests:
    """`ports.requests.Requests`; one connection a request."""

    def get(self, request: Request, timeout_seconds: float, cancelled: threading.Event) -> int:
        until = time.monotonic() + timeout_seconds if timeout_seconds else None
        for _ in range(_MOST_REDIRECTS):
            try:
                status, location = _answer(request, until, cancelled)
            except ssl.SSLError as error:
                if error.reason not in _NO_TLS:
                    raise _failed(request, f"tls: {error.reason or error}") from error
                # Asked in the clear once more, without what only TLS would have kept secret.
                request = _in_the_clear(request)
                continue
            following = _followed(request, location) if status in _REDIRECTS else None
            if following is None:
                return status
            request = following
        raise _failed(request, f"stopped after {_MOST_REDIRECTS} redirects")


def _answer(request: Request, until: float | None, cancelled: threading.Event) -> tuple[int, str]:
    """Status and Location. Lets ssl.SSLError through: what it means is the caller's to say."""
    with closing(_connection(request, min(_CONNECT_SECONDS, _left(request, until)))) as connection:
        try:
            connection.connect()
        except ssl.SSLError:
            raise
        except OSError as error:
            address = _address(request)
            raise _failed(request, f"dial tcp {address}: {_dial_error(error)}") from error
        try:
            _send(connection, request)
            _wait(cast(socket.socket, connection.sock), request, until, cancelled)
            answer = connection.getresponse()
        except ssl.SSLError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise _failed(request, _read_error(error)) from error
        return answer.status, answer.getheader("Location", "")


def _connection(request: Request, seconds: float) -> http.client.HTTPConnection:
    if request.scheme == "http":
        return http.client.HTTPConnection(request.host, request.port, timeout=seconds)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(request.host, request.port, timeout=seconds, context=context)


def _send(connection: http.client.HTTPConnection, request: Request) -> None:
    names = {name.lower() for name, _ in request.headers}
    connection.putrequest("GET", _target(request.path), skip_host="host" in names, skip_accept_encoding=True)
    for name, value in (("User-Agent", USER_AGENT), ("Accept", "*/*")):
        if name.lower() not in names:
            connection.putheader(name, value)
    for name, value in request.headers:
        # An empty one is how a manifest says that a header of ours is not to be sent.
        if value or name.lower() not in ("user-agent", "accept"):
            connection.putheader(name, value)
    connection.putheader("Connection", "close")
    connection.endheaders()


def _target(path: str) -> str:
    """What stands in the request line: blanks and what is not ASCII are escaped, a path begins with a slash."""
    parts = urlsplit(path)
    where = parts.path if parts.path.startswith("/") else f"/{parts.path}"
    text = f"{where}?{parts.query}" if parts.query else where
    return "".join(one if "!" <= one <= "~" else "".join(f"%{byte:02X}" for byte in one.encode()) for one in text)


def _wait(raw: socket.socket, request: Request, until: float | None, cancelled: threading.Event) -> None:
    """For the answer's first byte; what the pod is doing meanwhile may last."""
    while not readable(raw, min(_SLICE_SECONDS, _left(request, until))):
        if cancelled.is_set():
            raise _failed(request, "context canceled")
    raw.settimeout(min(_HEAD_SECONDS, _left(request, until)))


def _left(request: Request, until: float | None) -> float:
    if until is None:
        return _CONNECT_SECONDS
    left = until - time.monotonic()
    if left <= 0:
        raise _failed(request, _TIMED_OUT)
    return left


def _followed(request: Request, location: str) -> Request | None:
    """Where the answer sends to, if that is the same host; None where the answer stands as it is."""
    target = urlsplit(urljoin(_url(request), location))
    if not location or target.hostname != request.host or target.scheme not in ("http", "https"):
        return None
    path = f"{target.path or '/'}?{target.query}" if target.query else target.path or "/"
    port = target.port or (443 if target.scheme == "https" else 80)
    return msgspec.structs.replace(request, scheme=target.scheme, port=port, path=path)


def _in_the_clear(request: Request) -> Request:
    kept = tuple((name, value) for name, value in request.headers if name.lower() != "authorization")
    return msgspec.structs.replace(request, scheme="http", headers=kept)


def _address(request: Request) -> str:
    host = f"[{request.host}]" if ":" in request.host else request.host
    return f"{host}:{request.port}"


def _url(request: Request) -> str:
    return f"{request.scheme}://{_address(request)}{_target(request.path)}"


def _failed(request: Request, why: str) -> RequestFailed:
    return RequestFailed(f'Get "{_url(request)}": {why}')


def _dial_error(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"lookup: {error.strerror}"
    if isinstance(error, TimeoutError) and error.errno is None:
        return "i/o timeout"
    said = os.strerror(error.errno) if error.errno else str(error)
    return f"connect: {said.lower()}"


def _read_error(error: Exception) -> str:
    if isinstance(error, http.client.RemoteDisconnected):
        return "EOF"
    if isinstance(error, TimeoutError):
        return _TIMED_OUT
    if isinstance(error, ConnectionResetError):
        return "read: connection reset by peer"
    return str(error) or type(error).__name__
