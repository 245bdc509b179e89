"""A fake EffectContext: it allows every call and collects the signals that the worker sends."""

from __future__ import annotations

import threading

from chronolet_schemas.envelope import Signal


class Context:
    """An `EffectContext` that allows every call and collects signals."""

    entity, cause, token, resume = "node", "1-1", "t", ""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.sent: list[Signal] = []

    def fence(self, point: str) -> None: ...

    def done(self, point: str) -> None: ...

    def send(self, signal: Signal, *, cause: str = "") -> None:
        del cause
        self.sent.append(signal)
