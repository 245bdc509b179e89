"""Waiting for bytes on a socket with any descriptor number."""

from __future__ import annotations

import os
import socket

import pytest

from chronolet.adapters.sockets.readable import readable


@pytest.mark.parametrize("number", [0, 1500])
def test_silence_bytes_and_end_of_file(number: int) -> None:
    ours, theirs = socket.socketpair()
    if number:
        os.dup2(ours.fileno(), number)
        ours.close()
        ours = socket.socket(fileno=number)
    with ours, theirs:
        assert not readable(ours, 0.01)
        theirs.sendall(b"x")
        assert readable(ours, 1)
        assert ours.recv(1) == b"x"
        theirs.close()
        assert readable(ours, 1)
