"""Connect without blocking: resolve the name, then try each address in turn.

Input: host and port. Output: a connected socket, or the last error. Next: `http`, `tcp`. The caller limits the time by
calling `abandon`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence

from chronolet.adapters.probes.handlers.name_lookup import Address, NameLookup
from chronolet.adapters.probes.scheduling.loop import WRITABLE, Loop
from chronolet.ports.pods.probes import Result

_OURS = (
    errno.EAGAIN,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.EADDRNOTAVAIL,
    errno.ENETDOWN,
    errno.ENETUNREACH,
)
_NOT_YET = (errno.EALREADY, errno.EINPROGRESS)

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""With this option, closing a socket resets the connection, so that the machine does not keep a TIME_WAIT entry for a
minute (there may be some 20,000 of them). The kubelet lets connections linger for a second, which saves nothing on
Linux and may block the thread that closes them.
"""


def judged(error: OSError) -> Result:
    """Classify a failed connection: "error" if this machine is short of resources or has no network, otherwise
    "failure". The kubelet counts a missing network as a failure.
    """
    return "error" if error.errno in _OURS else "failure"


class Dial:
    """One connection attempt. Exactly one of the two callbacks is called, and neither after `abandon`."""

    def __init__(
        self, loop: Loop, *, connected: Callable[[socket.socket], None], failed: Callable[[OSError], None]
    ) -> None:
        self._loop = loop
        self._connected = connected
        self._failed = failed
        self._addresses: Iterator[Address] = iter(())
        self._raw: socket.socket | None = None
        self._over = False

    def begin(self, names: NameLookup, host: str, port: int) -> None:
        """Start connecting. Separate from the constructor because either callback may be called before this method
        returns.
        """
        names.find(host, port, self._found)

    def abandon(self) -> None:
        """Stop connecting; a socket that is already connected belongs to the caller. Callbacks are dropped to break the
        reference cycle with the caller, so that both objects are freed without the garbage collector.
        """
        self._over = True
        self._connected = self._failed = _ignore
        self._drop()

    def _found(self, found: Sequence[Address] | OSError) -> None:
        if self._over:
            return
        if isinstance(found, OSError):
            self._end(found)
            return
        self._addresses = iter(found)
        self._next(None)

    def _next(self, error: OSError | None) -> None:
        """Try the next address. If none is left, fail with the last error."""
        self._drop()
        for family, address in self._addresses:
            try:
                raw = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            except OSError as refused:  # unsupported address family, or out of descriptors
                error = refused
                continue
            self._raw = raw
            number = raw.connect_ex(address) and raw.connect_ex(address)  # a local server may accept in between
            if number in _NOT_YET:
                self._loop.watch(raw.fileno(), WRITABLE, self._ready)
                return
            if not number:
                self._hand_over(raw)
                return
            error = OSError(number, os.strerror(number))
            self._drop()
        self._end(error or OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL)))

    def _ready(self) -> None:
        raw = self._raw
        if raw is None:
            return
        number = raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._next(OSError(number, os.strerror(number)))
        else:
            self._hand_over(raw)

    def _hand_over(self, raw: socket.socket) -> None:
        """Hand the socket over to the caller. If it is being watched, it stays watched: the caller decides what to
        watch for next.
        """
        self._raw, self._over = None, True
        self._connected(raw)

    def _end(self, error: OSError) -> None:
        self._over = True
        self._failed(error)

    def _drop(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            self._loop.unwatch(raw.fileno())
            closed(raw)


def closed(raw: socket.socket) -> None:
    """Close a socket. An error on close says nothing about the container, and the descriptor is freed nevertheless."""
    with contextlib.suppress(OSError):
        raw.close()


def _ignore(_: object) -> None: ...
