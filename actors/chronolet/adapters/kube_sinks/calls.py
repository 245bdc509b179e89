"""One HTTP call to a sink, bounded in time and size no matter how the server behaves.

Input: a URL when created; then method, path, headers and body per call. Output: a complete response, or `Unreachable`
with a one-line message. Next: `webhook`, `kubernetes`.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

CALL_SECONDS = 10.0
LARGEST_ANSWER = 1 << 20


class Unreachable(Exception):  # noqa: N818 - a result that every caller expects
    """No complete response was received."""


class HttpResponse(NamedTuple):
    """A complete response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Caller(Protocol):
    """Makes one call. Raises `Unreachable`, or ValueError for content that cannot be part of a request."""

    def __call__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpResponse: ...


class HttpCaller:
    """A `Caller` that uses the network. Paths are appended to the URL's path; a user and password in the URL are sent
    as Basic authentication. An `https` server's certificate is checked, against `ca_file` if given. Errors name only
    the server, since other parts of the URL may be secret.
    """

    def __init__(self, url: str, *, ca_file: str = "", seconds: float = CALL_SECONDS) -> None:
        parts = urlsplit(url)
        self.where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._host = parts.hostname or ""
        self._port = parts.port
        self._tls = parts.scheme == "https"
        self._path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self._ca_file = ca_file
        self._seconds = seconds
        self._login: dict[str, str] = {}
        if parts.username:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._login = {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}

    def __call__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        try:
            connection = self._connection()
            connection.connect()
            # With only a time-out per read, a response that trickles in would never end.
            cut = threading.Event()
            end = threading.Timer(self._seconds, _cut, [connection.sock, cut])
            end.daemon = True
            end.start()
            try:
                response = self._exchange(connection, method, path, headers, body)
                if cut.is_set():  # a response without a length looks complete when cut off
                    raise Unreachable(f"{self.where}: the response did not end within {self._seconds:g} s")
                return response
            finally:
                end.cancel()
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            text = str(error) or type(error).__name__
            raise Unreachable(f"{self.where}: {text}") from error

    def _exchange(
        self, connection: http.client.HTTPConnection, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> HttpResponse:
        connection.request(
            method, f"{self._path}{path}" or "/", body, {**self._login, **headers, "Connection": "close"}
        )
        response = connection.getresponse()
        found = response.read(LARGEST_ANSWER + 1)
        if len(found) > LARGEST_ANSWER:
            raise Unreachable(f"{self.where}: answered with more than {LARGEST_ANSWER} bytes")
        if response.length:  # `read` with a size does not report a body that is too short
            raise Unreachable(f"{self.where}: the response ended {response.length} bytes early")
        return HttpResponse(response.status, {name.lower(): value for name, value in response.getheaders()}, found)

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._tls:
            context = ssl.create_default_context(cafile=self._ca_file or None)
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._seconds, context=context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
        connection.response_class = _Response
        return connection


class _Response(http.client.HTTPResponse):
    """A response whose head must be complete. The standard library also accepts a head that is cut off when the
    connection ends.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.fp: Any = _WholeLines(self.fp)


class _WholeLines:
    """A file wrapper that rejects a line that is cut off before its newline."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readline(self, limit: int) -> bytes:
        line: bytes = self._file.readline(limit)
        if len(line) < limit and not line.endswith(b"\n"):
            raise http.client.RemoteDisconnected("the response ended within a line")
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _cut(raw: socket.socket, cut: threading.Event) -> None:
    """Shut the socket down, so that its reader sees the end of the stream."""
    cut.set()
    with suppress(OSError):
        raw.shutdown(socket.SHUT_RDWR)
