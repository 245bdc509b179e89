"""Turn an HTTP connection to the engine into the streams of a running command.

Input: a connected socket, an upgrade request. Output: `Attached`, which reads from and writes to the raw socket. Next:
`connection`. http.client is unsuitable because it reads ahead into its own buffer.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from chronolet.adapters.docker_runtime import errors, streams
from chronolet.adapters.sockets.readable import readable
from chronolet.ports.runtime.runtime import Refusal

_HEAD_LIMIT = 65_536
_PIECE = 65_536
_SWITCHING_PROTOCOLS = 101
_OK = 200


def upgraded(raw: socket.socket, target: str, body: bytes, *, tty: bool) -> Attached:
    """Request the streams of the command that `target` starts. Raises `Refusal` with the engine's message, or the
    socket's OSError.
    """
    head = (
        f"POST {target} HTTP/1.1",
        "Host: localhost",
        "Connection: Upgrade",
        "Upgrade: tcp",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    )
    raw.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
    reply, rest = _head(raw)
    status = _status(reply)
    if status not in (_SWITCHING_PROTOCOLS, _OK):
        raise errors.refused(status, rest + _rest(raw, _length(reply) - len(rest)))
    raw.settimeout(None)  # a command may be silent for any length of time
    return Attached(raw, rest, tty=tty)


class Attached:
    """Implements `ports.runtime.streams.Attachment` on a socket."""

    def __init__(self, raw: socket.socket, begun: bytes, *, tty: bool) -> None:
        self._raw = raw
        self._begun = begun
        self._tty = tty
        self._closed = False

    def output(self) -> Iterator[tuple[str, bytes]]:
        """Yield the output; with a terminal, it has no frames."""
        if not self._tty:
            yield from streams.output(self)
            return
        while piece := self.read_some():
            yield "stdout", piece

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._raw.sendall(data)

    def end_input(self) -> None:
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Shut the socket down, which wakes its reader; merely closing the socket would leave the reader waiting."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_RDWR)
        self._raw.close()

    def has_something(self, seconds: float) -> bool:
        """Wait at most `seconds`; return whether `read_some` would not block, because of bytes or the end of the
        stream.
        """
        try:
            return bool(self._begun) or readable(self._raw, seconds)
        except (OSError, ValueError):
            return True  # closed by another thread

    def read_some(self) -> bytes:
        """Wait for output and return the bytes received; empty at the end of the stream or after `close`. Raises
        `Refusal` if the connection breaks.
        """
        if self._begun:
            piece, self._begun = self._begun, b""
            return piece
        try:
            return self._raw.recv(_PIECE)
        except OSError as error:
            if self._closed:
                return b""
            raise Refusal("unavailable", f"Docker: a command's output was cut off ({error.strerror})") from error

    def read_exactly(self, count: int) -> bytes:
        """Return exactly `count` bytes, or fewer at the end of the stream."""
        found = bytearray()
        while len(found) < count and (piece := self.read_some()):
            found += piece
        self._begun = bytes(found[count:])
        return bytes(found[:count])


def _head(raw: socket.socket) -> tuple[bytes, bytes]:
    """Return the reply's head, and any bytes after it that have already arrived."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = raw.recv(_PIECE)
        if not piece or len(found) > _HEAD_LIMIT:
            raise ConnectionResetError("incomplete reply")
        found += piece
    head, _, rest = found.partition(b"\r\n\r\n")
    return head, rest


def _status(head: bytes) -> int:
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():  # noqa: PLR2004
        raise ConnectionResetError("not HTTP")
    return int(words[1])


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name == b"content-length" and value.strip().isdigit():
            return int(value)
    return 0


def _rest(raw: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count and (piece := raw.recv(_PIECE)):
        found += piece
    return found
