"""HTTP requests to pods, as the kubelet makes them for lifecycle hooks.

Input: a request. Output: the status of the response, or `RequestFailed`. Next: a pod's network. Corresponds to
pkg/kubelet/lifecycle/handlers.go (runHTTPHandler), pkg/probe/http/request.go.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from contextlib import closing
from typing import cast

import msgspec

from chronolet.adapters.http import texts
from chronolet.adapters.sockets.readable import readable
from chronolet.ports.pods.requests import Request, RequestFailed

USER_AGENT = f"kube-lifecycle/{texts.VERSION}"

_CONNECT_SECONDS = 30.0
_HEAD_SECONDS = 30.0  # time allowed from the first byte of a response to the end of its head
_SLICE_SECONDS = 0.5


class HttpRequests:
    """Implements `ports.pods.requests.Requests` with one connection per request."""

    def get(self, request: Request, timeout_seconds: float, cancelled: threading.Event) -> int:
        until = time.monotonic() + timeout_seconds if timeout_seconds else None
        for _ in range(texts.MOST_REQUESTS):
            try:
                status, location = _exchange(request, until, cancelled)
            except ssl.SSLError as error:
                if error.reason not in texts.NO_TLS:
                    raise _failed(request, f"tls: {error.reason or error}") from error
                # The server does not speak TLS: retry without TLS and without the header that only TLS keeps secret.
                request = _without_tls(request)
                continue
            try:
                following = texts.followed(request, location) if status in texts.REDIRECTS else None
            except texts.BadLocation as error:
                raise _failed(request, str(error)) from error
            if following is None:
                return status
            request = following
        raise _failed(request, texts.TOO_MANY)


def _exchange(request: Request, until: float | None, cancelled: threading.Event) -> tuple[int, str]:
    """Make the request; return status and Location. ssl.SSLError propagates to the caller, which interprets it."""
    with closing(_connection(request, min(_CONNECT_SECONDS, _left(request, until)))) as connection:
        try:
            connection.connect()
        except ssl.SSLError:
            raise
        except OSError as error:
            raise _failed(request, texts.dial_failed(request.host, request.port, error)) from error
        try:
            _send(connection, request)
            _wait(cast(socket.socket, connection.sock), request, until, cancelled)
            response = connection.getresponse()
        except ssl.SSLError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise _failed(request, _read_error(error)) from error
        return response.status, response.getheader("Location", "")


def _connection(request: Request, seconds: float) -> http.client.HTTPConnection:
    if request.scheme == "http":
        return http.client.HTTPConnection(request.host, request.port, timeout=seconds)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(request.host, request.port, timeout=seconds, context=context)


def _send(connection: http.client.HTTPConnection, request: Request) -> None:
    names = {name.lower() for name, _ in request.headers}
    connection.putrequest("GET", texts.target(request.path), skip_host="host" in names, skip_accept_encoding=True)
    for name, value in (("User-Agent", USER_AGENT), ("Accept", "*/*")):
        if name.lower() not in names:
            connection.putheader(name, value)
    for name, value in request.headers:
        # An empty value in a manifest suppresses a default header.
        if value or name.lower() not in ("user-agent", "accept"):
            connection.putheader(name, value)
    connection.putheader("Connection", "close")
    connection.endheaders()


def _wait(raw: socket.socket, request: Request, until: float | None, cancelled: threading.Event) -> None:
    """Wait for the first byte of the response; the pod may need a long time before it replies."""
    while not readable(raw, min(_SLICE_SECONDS, _left(request, until))):
        if cancelled.is_set():
            raise _failed(request, "context canceled")
    raw.settimeout(min(_HEAD_SECONDS, _left(request, until)))


def _left(request: Request, until: float | None) -> float:
    if until is None:
        return _CONNECT_SECONDS
    left = until - time.monotonic()
    if left <= 0:
        raise _failed(request, texts.TIMED_OUT)
    return left


def _without_tls(request: Request) -> Request:
    kept = tuple((name, value) for name, value in request.headers if name.lower() != "authorization")
    return msgspec.structs.replace(request, scheme="http", headers=kept)


def _failed(request: Request, why: str) -> RequestFailed:
    return RequestFailed(texts.failed(request, why))


def _read_error(error: Exception) -> str:
    if isinstance(error, http.client.RemoteDisconnected):
        return "EOF"
    if isinstance(error, TimeoutError):
        return texts.TIMED_OUT
    if isinstance(error, ConnectionResetError):
        return "read: connection reset by peer"
    return str(error) or type(error).__name__
