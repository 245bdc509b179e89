"""One HTTP call to a sink, bounded in time and size whatever the other side does.

Comes in: a URL once, then method, path, headers, body. Goes out: a whole answer, or `Unreachable` in one line. Next:
`webhook`, `kubernetes`.
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


class Unreachable(Exception):  # noqa: N818 - an answer that every caller expects
    """There was no whole answer."""


class Answer(NamedTuple):
    """Header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Caller(Protocol):
    """Makes one call. Raises `Unreachable`; ValueError for what cannot be put into a request."""

    def __call__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer: ...


class HttpCaller:
    """A `Caller` over the network. Paths are put behind that of the URL; an `https` server's certificate is checked,
    against `ca_file` if there is one. What is said of failures names the server only: the rest of a URL may be secret.
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

    def __call__(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        try:
            connection = self._connection()
            connection.connect()
            # A time-out on each read alone would let an answer that drips go on for ever.
            cut = threading.Event()
            end = threading.Timer(self._seconds, _cut, [connection.sock, cut])
            end.daemon = True
            end.start()
            try:
                answer = self._asked(connection, method, path, headers, body)
                if cut.is_set():  # what was cut off may look whole: an answer without a length ends where it ends
                    raise Unreachable(f"{self.where}: the answer did not end within {self._seconds:g} s")
                return answer
            finally:
                end.cancel()
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            said = str(error) or type(error).__name__
            raise Unreachable(f"{self.where}: {said}") from error

    def _asked(
        self, connection: http.client.HTTPConnection, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        connection.request(
            method, f"{self._path}{path}" or "/", body, {**self._login, **headers, "Connection": "close"}
        )
        answer = connection.getresponse()
        found = answer.read(LARGEST_ANSWER + 1)
        if len(found) > LARGEST_ANSWER:
            raise Unreachable(f"{self.where}: answered with more than {LARGEST_ANSWER} bytes")
        if answer.length:  # `read` with a size says nothing of what is missing
            raise Unreachable(f"{self.where}: the answer ended {answer.length} bytes early")
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, found)

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
    """One whose head has to be whole: to the standard library's, a head ends where the connection does."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.fp: Any = _WholeLines(self.fp)


class _WholeLines:
    """A file each of whose lines ends as a line does."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readline(self, limit: int) -> bytes:
        line: bytes = self._file.readline(limit)
        if len(line) < limit and not line.endswith(b"\n"):
            raise http.client.RemoteDisconnected("the answer ended within a line")
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _cut(raw: socket.socket, cut: threading.Event) -> None:
    """Whoever reads from it finds its end."""
    cut.set()
    with suppress(OSError):
        raw.shutdown(socket.SHUT_RDWR)
