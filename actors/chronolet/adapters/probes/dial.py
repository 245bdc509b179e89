"""Connecting without waiting: name, then each of its addresses in turn.

Comes in: host and port. Goes out: a connected socket, or the last error. Next: `http`, `tcp`. Bounded by whoever
dials: it lets go when its time is over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator, Sequence

from chronolet.adapters.probes.loop import WRITABLE, Loop
from chronolet.adapters.probes.names import Address, Names
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

_AT_ONCE = struct.pack("ii", 1, 0)
"""Closing forgets the connection, with a reset. Else the machine would remember each for a minute (TIME_WAIT), some
20,000 of them. The kubelet lets it linger for a second, which spares Linux nothing and may keep the closer waiting.
"""


def judged(error: OSError) -> Result:
    """What it says of the container that there was no connection: nothing, where this machine has run short
    or has no network. The kubelet counts the latter as a failure.
    """
    return "error" if error.errno in _OURS else "failure"


class Dial:
    """One connection in the making. Exactly one of the two is called, never after `let_go`."""

    def __init__(
        self, loop: Loop, *, connected: Callable[[socket.socket], None], failed: Callable[[OSError], None]
    ) -> None:
        self._loop = loop
        self._connected = connected
        self._failed = failed
        self._addresses: Iterator[Address] = iter(())
        self._raw: socket.socket | None = None
        self._over = False

    def begin(self, names: Names, host: str, port: int) -> None:
        """Separate from the making: both calls may come before this returns."""
        names.find(host, port, self._found)

    def let_go(self) -> None:
        """Stop; a socket that was handed over is its receiver's. Whoever dials knows it and is known to it: it forgets
        him, so that neither waits for the garbage collector.
        """
        self._over = True
        self._connected = self._failed = _nobody
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
        """The next address; with none left that was the last error."""
        self._drop()
        for family, address in self._addresses:
            try:
                raw = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            except OSError as refused:  # no such family here, or no descriptor left
                error = refused
                continue
            self._raw = raw
            number = raw.connect_ex(address) and raw.connect_ex(address)  # one on this machine has answered meanwhile
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
        """Still watched, if it was: what it is watched for next is its receiver's business."""
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
    """Close it. An error of closing says nothing of the container, and the descriptor is free all the same."""
    with contextlib.suppress(OSError):
        raw.close()


def _nobody(_: object) -> None: ...
