"""Resolve hosts: numeric addresses immediately, names on a thread that waits for the resolver.

Input: a host, a port. Output: socket addresses, on the loop's thread. Next: `dial`. Concurrent look-ups of the same
host and port share a thread, which ends when the resolver has replied or given up.
"""

from __future__ import annotations

import errno
import functools
import os
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from chronolet.adapters.probes.scheduling.loop import Loop
from chronolet.adapters.probes.scheduling.thread_priority import reset_priority

Address = tuple[socket.AddressFamily, Any]
Answered = Callable[[Sequence[Address] | OSError], None]


class NameLookup:
    """Resolves hosts. Must be used on the loop's thread."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: dict[tuple[str, int], list[Answered]] = {}

    def find(self, host: str, port: int, answered: Answered) -> None:
        """Look up a host. `answered` is called immediately, or later on the loop's thread."""
        found = _numeric(host, port)
        if found:
            answered(found)
            return
        waiting = self._waiting.setdefault((host, port), [])
        waiting.append(answered)
        if len(waiting) == 1:
            self._begin(host, port)

    def _begin(self, host: str, port: int) -> None:
        try:
            threading.Thread(target=self._ask, args=(host, port), name=f"lookup {host}", daemon=True).start()
        except RuntimeError:  # out of threads or memory
            self._report(host, port, OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))

    def _ask(self, host: str, port: int) -> None:
        reset_priority()
        found: Sequence[Address] | OSError
        try:
            found = _looked_up(host, port, 0)
        except UnicodeError:  # not a valid host name
            found = socket.gaierror(socket.EAI_NONAME, "no such host")
        except OSError as error:
            found = error
        self._loop.soon(lambda: self._report(host, port, found))

    def _report(self, host: str, port: int, found: Sequence[Address] | OSError) -> None:
        for answered in self._waiting.pop((host, port)):
            answered(found)


@functools.lru_cache(maxsize=4096)
def _numeric(host: str, port: int) -> Sequence[Address]:
    """Return the socket addresses for a numeric host; empty if the host is a name."""
    try:
        return _looked_up(host, port, socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return ()


def _looked_up(host: str, port: int, flags: int) -> Sequence[Address]:
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return tuple((family, address) for family, _, _, _, address in answers)
