"""Addresses of hosts: those that are addresses already at once, names by a thread that waits for the resolver.

Comes in: a host, a port. Goes out: socket addresses on the loop's thread. Next: `dial`. One thread a name at a time,
however many ask for it; it ends when the resolver has answered or given up.
"""

from __future__ import annotations

import errno
import functools
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from chronolet.adapters.probes.loop import Loop
from chronolet.adapters.probes.niceness import go_with_all

Address = tuple[socket.AddressFamily, Any]
Answered = Callable[[Sequence[Address] | OSError], None]


class Names:
    """Used on the loop's thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._asked: dict[tuple[str, int], list[Answered]] = {}

    def find(self, host: str, port: int, answered: Answered) -> None:
        """`answered` is called at once, or later on the loop's thread."""
        found = _numeric(host, port)
        if found:
            answered(found)
            return
        waiting = self._asked.setdefault((host, port), [])
        waiting.append(answered)
        if len(waiting) == 1:
            self._begin(host, port)

    def _begin(self, host: str, port: int) -> None:
        try:
            threading.Thread(target=self._ask, args=(host, port), name=f"lookup {host}", daemon=True).start()
        except RuntimeError:  # no more threads, or no memory for one
            self._tell(host, port, OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))

    def _ask(self, host: str, port: int) -> None:
        go_with_all()
        found: Sequence[Address] | OSError
        try:
            found = _looked_up(host, port, 0)
        except UnicodeError:  # no name that could be asked for
            found = socket.gaierror(socket.EAI_NONAME, "no such host")
        except OSError as error:
            found = error
        self._loop.soon(lambda: self._tell(host, port, found))

    def _tell(self, host: str, port: int, found: Sequence[Address] | OSError) -> None:
        for answered in self._asked.pop((host, port)):
            answered(found)


@functools.lru_cache(maxsize=4096)
def _numeric(host: str, port: int) -> Sequence[Address]:
    """Empty for what is no address."""
    try:
        return _looked_up(host, port, socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return ()


def _looked_up(host: str, port: int, flags: int) -> Sequence[Address]:
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return tuple((family, address) for family, _, _, _, address in answers)
