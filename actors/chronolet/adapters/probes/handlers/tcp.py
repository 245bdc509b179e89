"""TCP probes, which succeed if a connection opens. Corresponds to pkg/probe/tcp/tcp.go.

Input: `TcpTarget`. Output: a `Reading`. Next: the prober's worker.
"""

from __future__ import annotations

import socket

from chronolet.adapters.http import texts
from chronolet.adapters.probes.handlers.dial import Dial, closed, judged
from chronolet.adapters.probes.handlers.loop_attempt import Done, LoopAttempt
from chronolet.adapters.probes.handlers.name_lookup import NameLookup
from chronolet.adapters.probes.scheduling.loop import Loop
from chronolet.ports.pods.probes import May, TcpTarget


class TcpAttempt(LoopAttempt):
    """One attempt to connect. The connection is closed as soon as it is established; errors on close are ignored."""

    def __init__(
        self, loop: Loop, names: NameLookup, target: TcpTarget, timeout_seconds: float, done: Done, *, may: May
    ) -> None:
        super().__init__(loop, timeout_seconds, done, may)
        self._target = target
        self._dial = Dial(loop, connected=self._connected, failed=self._failed)
        if not self._is_over():
            self._dial.begin(names, target.host, target.port)

    def _connected(self, raw: socket.socket) -> None:
        self._loop.unwatch(raw.fileno())
        closed(raw)
        self._end("success", "")

    def _failed(self, error: OSError) -> None:
        text = texts.dial_failed(self._target.host, self._target.port, error)
        self._end(judged(error), text, timed_out=isinstance(error, TimeoutError))

    def _late_text(self) -> str:
        return texts.dial_failed(self._target.host, self._target.port, TimeoutError())

    def _release(self) -> None:
        self._dial.abandon()
