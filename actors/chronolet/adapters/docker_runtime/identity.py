"""Identifies the engine that answers on a socket, and asks again only if another engine may have replaced it.

Input: the engine's address. Output: `EngineIdentity`; Refusal if no engine answers. Next: `node.site`, which compares
the identity with that of the node's engine before each call.

The identity is read over a connection that then stays open and idle. As long as this connection is open, and the
socket's file has not been replaced, the same dockerd listens: an engine with another root folder is another process.
Checking this takes two system calls.
"""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import NamedTuple

import msgspec
from docker.transport.unixconn import UnixHTTPConnection
from urllib3.exceptions import HTTPError

from chronolet.adapters.docker_runtime import errors
from chronolet.ports.runtime.runtime import EngineIdentity, Refusal

_SCHEME = "unix://"
_BASE = "http+docker://localhost"
_SECONDS = 30


class _Info(msgspec.Struct):
    ID: str = ""
    DockerRootDir: str = ""


_info = msgspec.json.Decoder(_Info)


class _Known(NamedTuple):
    """An identity, the connection on which it was read, and the socket's file at that time."""

    identity: EngineIdentity
    connection: UnixHTTPConnection
    file: tuple[int, int]

    def still(self, path: str) -> bool:
        """Whether the engine with this identity still listens on the socket at `path`."""
        raw = self.connection.sock
        if raw is None:  # the engine does not keep connections open
            return False
        try:
            return _silent(raw) and _file(path) == self.file
        except OSError:
            return False


class EngineIdentities:
    """The identity of the engine at `host`. Thread-safe. Connects on the first call."""

    def __init__(self, host: str, *, timeout_seconds: int = _SECONDS) -> None:
        self._path = host.removeprefix(_SCHEME)
        self._timeout = timeout_seconds
        self._asking = threading.Lock()
        self._known: _Known | None = None
        self._asked = 0
        self._failure: Refusal | None = None

    def now(self) -> EngineIdentity:
        """Return the identity of the engine that listens now. Raises `Refusal` if none answers in time."""
        known = self._known
        if known is not None and known.still(self._path):
            return known.identity
        asked = self._asked
        with self._asking:
            if self._asked == asked:
                self._ask()
            # Otherwise another thread has asked since: a hanging engine must not block each thread for a time-out.
            if self._failure is not None:
                raise Refusal(self._failure.kind, str(self._failure)) from self._failure
            assert self._known is not None  # noqa: S101 - set by an attempt without a failure
            return self._known.identity

    def latest(self) -> EngineIdentity | None:
        """Return the identity that was read last, without asking the engine; None if none has answered."""
        known = self._known
        return None if known is None else known.identity

    def close(self) -> None:
        """Close the connection."""
        with self._asking:
            self._drop()

    def _ask(self) -> None:
        self._drop()
        self._failure = None
        try:
            self._known = self._read()
        except Refusal as refusal:
            self._failure = refusal
        finally:
            self._asked += 1

    def _read(self) -> _Known:
        connection = UnixHTTPConnection(_BASE, self._path, timeout=self._timeout)
        try:
            before = _file(self._path)
            connection.request("GET", "/info")
            reply = connection.getresponse()
            body = reply.data
            if reply.status >= errors.FIRST_ERROR_STATUS:
                raise errors.refused(reply.status, body)
            found = _info.decode(body)
            if connection.sock is not None:
                connection.sock.setblocking(False)
        except (HTTPError, OSError) as error:
            connection.close()
            raise errors.broken(error, self._path, "GET /info") from error
        except msgspec.DecodeError as error:
            connection.close()
            raise Refusal("failed", f"{self._path}: not a Docker Engine: /info is no engine's ({error})") from error
        except Refusal:
            connection.close()
            raise
        return _Known(EngineIdentity(id=found.ID, root=found.DockerRootDir), connection, before)

    def _drop(self) -> None:
        if self._known is not None:
            self._known.connection.close()
            self._known = None


def _silent(raw: socket.socket) -> bool:
    """Whether the connection is open and the engine has sent nothing unsolicited."""
    try:
        raw.recv(1, socket.MSG_PEEK)  # the socket does not block, see `_read`
    except BlockingIOError:
        return True
    return False


def _file(path: str) -> tuple[int, int]:
    """Return the device and inode of the socket's file. Raises OSError if it is gone."""
    found = Path(path).stat()
    return found.st_dev, found.st_ino
