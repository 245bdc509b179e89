"""Checks the paths of unix sockets.

Input: a path. Output: `SocketError`. Next: `unix_sockets`, `grpc_sockets`.
"""

from __future__ import annotations

import os

_LONGEST_PATH = 107


class SocketError(Exception):
    """A socket cannot be created or used. The message names the socket and the reason."""


def check_length(socket: str) -> None:
    """Raise SocketError if the path is too long for a socket."""
    if len(os.fsencode(socket)) > _LONGEST_PATH:
        raise SocketError(f"{socket}: the path exceeds the {_LONGEST_PATH} bytes allowed for a socket")
