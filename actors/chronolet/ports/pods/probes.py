"""Probing a container from outside: what to ask, how it went, and the one thread that all probes of a process share.

Comes in: a target and a time. Goes out: one `Reading` an attempt, in Go's and the kubelet's words. Next: the
prober's workers. Answers to pkg/probe. Implementation: `adapters.probes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from chronolet.ports.pods.requests import Request
from chronolet.rules.probes.judgement import NO_DELAY, Delay
from chronolet_schemas.prober import Shortage


class HttpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A GET that is to be answered with a status of 200 to 399."""

    request: Request


class TcpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A port that is to take a connection."""

    host: str
    port: int


class GrpcTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A server whose health service is to say SERVING, of itself or of the `service` named."""

    host: str
    port: int
    service: str = ""


class ExecTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A command in a container that is to end with 0."""

    container_id: str
    command: Sequence[str]


Target = HttpTarget | TcpTarget | GrpcTarget | ExecTarget

Result = Literal["success", "warning", "failure", "error"]
"""`warning` counts as a success, and is told. `error` is one of the asking itself: it says nothing of the container,
and is tried again (pkg/probe/probe.go, where it stands beside the result `unknown`).
"""

OUTPUT_LIMIT = 10 * 1024
"""How many bytes of a body, or of a command's output, are kept."""


May = Callable[[], bool]
"""Whether the outside may still be touched: asked before every call, on whatever thread makes it. An attempt that may
not go on is an `error`.
"""

MAY_NOT = "the probe was given up: this process may have lost its lease"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """How one attempt went. `code` is an exit code or an HTTP status, None where there was none.

    `started` is by the clock of `time.monotonic`: it may have waited for its turn before. `timed_out`: there was no
    answer in time. `engine_seconds`: for so long the engine through which it is asked did not answer. `delay` is what
    was measured of this process and this machine meanwhile.
    """

    result: Result
    output: str = ""
    code: int | None = None
    started: float
    seconds: float
    timed_out: bool = False
    engine_seconds: float = 0.0
    delay: Delay = NO_DELAY


class Attempt(Protocol):
    """One attempt under way."""

    @property
    def began(self) -> bool:
        """False while it waits for its turn: others are at work."""

    def cancel(self) -> None:
        """Nothing is told of it any more; what it holds is given back. On the prober's thread only."""


class Timer(Protocol):
    """Something that is to happen later."""

    def cancel(self) -> None:
        """It does not happen. On the prober's thread only."""


class Prober(Protocol):
    """All probing of a process, on one thread of its own; what would block that thread has others."""

    def soon(self, action: Callable[[], object]) -> None:
        """Call `action` on the prober's thread. From any thread."""

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` on the prober's thread at a time of `time.monotonic`. From the prober's thread only."""

    def begin(
        self,
        target: Target,
        timeout_seconds: float,
        done: Callable[[Reading], None],
        may: May,
        *,
        who: str = "",
        first: bool = False,
    ) -> Attempt:
        """Ask once, as long as one `may`. `done` is called on the prober's thread, once, within the time after
        `started`; never after `cancel`. From the prober's thread only.

        `who` asks: one of its attempts at a time, and where places are few it has as much of them as everybody. A
        command carries the name; with the `first`, all that still runs in the container under it is ended, for it is
        what a process that was killed has left.
        """

    def short_of(self) -> tuple[Shortage, ...]:
        """What this machine was short of in the last seconds. On the prober's thread only."""

    def stop(self) -> None:
        """End: nothing is called any more, nothing is held, and no command runs on, as far as it can be ended soon."""
