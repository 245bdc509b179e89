"""HTTP connections to one Docker Engine: pooled, with time-outs, thread-safe. Errors become `Refusal`.

Input: method, path, query, body. Output: the reply's bytes, or an open reply to read from. Next: `runtime`.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import cast
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from docker.transport.unixconn import UnixHTTPConnection, UnixHTTPConnectionPool
from urllib3.exceptions import HTTPError

from chronolet.adapters.docker_runtime import errors
from chronolet.adapters.docker_runtime.hijack import Attached, upgraded
from chronolet.adapters.docker_runtime.replies import Cut, OpenReply
from chronolet.ports.runtime.runtime import Refusal, RefusalKind

_SCHEME = "unix://"
_BASE = "http+docker://localhost"
"""HTTP requires a host in each request; an engine on a unix socket ignores it."""
_NEWEST_KNOWN = (1, 51)
"""Newest API version that the agent supports; newer engines are also called with this version."""
_CONNECT_SECONDS = 5.0
# A burst opens more connections than the pool holds; urllib3 would warn about each connection that it then closes.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
_NO_RETRIES = urllib3.Retry(total=False, redirect=False)

Query = Mapping[str, str] | Sequence[tuple[str, str]]

Permit = Callable[[], None]
"""Raises `Refusal` if the engine that answers now is not the one that the caller may use."""

ABSENT: Sequence[RefusalKind] = ("not_found",)
ENDED: Sequence[RefusalKind] = ("not_found", "conflict")
"""Kinds which mean that there is nothing left to act on. `conflict`: the container is not running, and none of its
processes is left.
"""


class _Version(msgspec.Struct):
    api: str = msgspec.field(name="ApiVersion")


_version_decoder = msgspec.json.Decoder(_Version)


class Connection:
    """Connections to one engine on a unix socket. Raises `Refusal` if `host` does not begin with `unix://`.
    `timeout_seconds` bounds each wait for bytes unless a call overrides it.

    At most `pool_size` idle connections are kept open, so that a burst does not leave open files behind.

    `permit` is called before each call, and again before a reply that something does not exist is passed on: another
    engine in the place of the expected one knows none of its containers.
    """

    def __init__(
        self, host: str, *, timeout_seconds: float = 30.0, pool_size: int = 16, permit: Permit = lambda: None
    ) -> None:
        if not host.startswith(_SCHEME):
            raise Refusal(
                "invalid",
                f"Docker host {host!r}: expected {_SCHEME}<path>; a pod's volumes are folders of this machine",
            )
        self.socket_path = host.removeprefix(_SCHEME)
        self._timeout = timeout_seconds
        self._permit = permit
        self._pool = UnixHTTPConnectionPool(_BASE, self.socket_path, maxsize=pool_size)
        self._prefix = ""

    def call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        *,
        timeout_seconds: float | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        """Make one request and return its complete reply.

        Raises `Refusal` if the status is 400 or above, or if the exchange fails.
        """
        self._permit()
        target = self._target(path, query)
        headers = {"Content-Type": content_type} if body is not None else {}
        try:
            reply = self._pool.urlopen(
                method,
                target,
                body=body,
                headers=headers,
                retries=_NO_RETRIES,
                timeout=self._bounds(timeout_seconds),
            )
        except (HTTPError, OSError) as error:
            raise self._broken(error, method, path) from error
        if reply.status >= errors.FIRST_ERROR_STATUS:
            raise self._refused(reply.status, reply.data)
        return reply.data

    def call_unless(
        self,
        kinds: Sequence[RefusalKind],
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> bytes | None:
        """Make a call as `call` does, but return None if it is refused with one of `kinds`, which mean that nothing
        exists or nothing is left to do.
        """
        try:
            return self.call(method, path, query, body, timeout_seconds=timeout_seconds)
        except Refusal as refusal:
            if refusal.kind in kinds:
                return None
            raise

    def open(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        idle_seconds: float | None = None,
        connected: Callable[[Cut], None] = lambda _: None,
    ) -> OpenReply:
        """Start a request and return its open reply, which is read as it arrives; `idle_seconds` bounds each silence in
        it (None: no limit). Raises `Refusal` as `call` does.

        `connected` is called before any of the reply has arrived, with an object that can end the exchange from another
        thread.
        """
        self._permit()
        connection = UnixHTTPConnection(_BASE, self.socket_path, timeout=int(_CONNECT_SECONDS))
        try:
            connection.connect()
            raw = cast(socket.socket, connection.sock)
            cut = Cut(raw)
            connected(cut)
            # The engine sends the head of some replies only with their first line, hence the longer time-out. It is set
            # on the connection, since urllib3 copies it to the socket before it sends the request, and again before it
            # reads the head.
            connection.timeout = max(self._timeout, idle_seconds or 0.0)  # type: ignore[assignment] # stubs: int
            connection.request(method, self._target(path, query), headers=dict(headers or {}), preload_content=False)
            reply = connection.getresponse()
            if reply.status >= errors.FIRST_ERROR_STATUS:
                raise self._refused(reply.status, reply.read())
            raw.settimeout(idle_seconds)
        except (HTTPError, OSError) as error:
            connection.close()
            raise self._broken(error, method, path) from error
        except Refusal:
            connection.close()
            raise
        return OpenReply(connection, cut, reply)

    def upgrade(self, path: str, body: bytes, *, tty: bool) -> Attached:
        """Make a POST request that starts a command, and turn the connection into the command's streams. Raises
        `Refusal` as `call` does.
        """
        self._permit()
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            raw.settimeout(self._timeout)
            raw.connect(self.socket_path)
            return upgraded(raw, self._target(path, None), body, tty=tty)
        except OSError as error:
            raw.close()
            raise self._broken(error, "POST", path) from error
        except Refusal as refusal:
            raw.close()
            if refusal.kind == "not_found":
                self._permit()
            raise

    def forget_version(self) -> None:
        """Negotiate the API version again before the next call, because the engine may have been replaced."""
        self._prefix = ""

    def close(self) -> None:
        """Close the idle connections; calls in progress finish on their own."""
        self._pool.close()

    def _target(self, path: str, query: Query | None) -> str:
        if not self._prefix:
            self._prefix = self._negotiated()
        return f"{self._prefix}{path}?{urlencode(query)}" if query else f"{self._prefix}{path}"

    def _negotiated(self) -> str:
        try:
            reply = self._pool.urlopen("GET", "/version", retries=_NO_RETRIES, timeout=self._bounds(None))
        except (HTTPError, OSError) as error:
            raise self._broken(error, "GET", "/version") from error
        if reply.status >= errors.FIRST_ERROR_STATUS:
            raise errors.refused(reply.status, reply.data)
        try:
            offered = _version_decoder.decode(reply.data).api
            major, minor = (int(part) for part in offered.split("."))
        except (msgspec.DecodeError, ValueError) as error:
            raise Refusal("failed", f"{self.socket_path}: not a Docker Engine: /version has no API version") from error
        use = min((major, minor), _NEWEST_KNOWN)
        return f"/v{use[0]}.{use[1]}"

    def _refused(self, status: int, body: bytes) -> Refusal:
        refusal = errors.refused(status, body)
        if refusal.kind == "not_found":
            self._permit()
        return refusal

    def _bounds(self, seconds: float | None) -> urllib3.Timeout:
        read = self._timeout if seconds is None else seconds
        return urllib3.Timeout(connect=min(_CONNECT_SECONDS, read), read=read)

    def _broken(self, error: Exception, method: str, path: str) -> Refusal:
        self._prefix = ""
        return errors.broken(error, self.socket_path, f"{method} {path}")


def quoted(name: str) -> str:
    """Escape a container's id or name for use in a URL path."""
    return quote(name, safe="")
