"""The port for probing containers: targets, readings, and the thread that all probes of a process share.

Input: a target and a time-out. Output: one `Reading` per attempt, with the messages of Go and the kubelet. Next: the
prober's workers. Source: pkg/probe. Implementation: `adapters.probes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from chronolet.ports.pods.requests import Request
from chronolet.rules.probes.judgement import NO_DELAY, Delay
from chronolet_schemas.prober import Shortage


class HttpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A GET request; statuses 200 to 399 are a success."""

    request: Request


class TcpTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A TCP port; an accepted connection is a success."""

    host: str
    port: int


class GrpcTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A gRPC health service; SERVING for the server or for `service` is a success."""

    host: str
    port: int
    service: str = ""


class ExecTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A command in a container; exit code 0 is a success."""

    container_id: str
    command: Sequence[str]


Target = HttpTarget | TcpTarget | GrpcTarget | ExecTarget

Result = Literal["success", "warning", "failure", "error"]
"""The result of an attempt. `warning` counts as a success and is reported. `error` is a failure of the probe itself: it
proves nothing about the container and is retried (pkg/probe/probe.go, which returns it together with the result
`unknown`).
"""

OUTPUT_LIMIT = 10 * 1024
"""Maximum number of bytes that are kept from a response's body or a command's output."""


May = Callable[[], bool]
"""Returns whether the process may still act on the outside world. Checked before every call, on the calling thread. If
it returns False, the attempt ends with `error`.
"""

MAY_NOT = "probe cancelled: this process may have lost its lease"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt. `code`: exit code or HTTP status, None if there was none.

    `started`: when the attempt began after waiting in the queue (`time.monotonic`). `timed_out`: whether there was no
    answer in time. `engine_seconds`: for how long the engine did not answer. `delay`: the stalls of this process and
    machine that were measured during the attempt.
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
    """One attempt in progress."""

    @property
    def began(self) -> bool:
        """Whether the attempt has begun; False while it waits in the queue behind other attempts."""

    def cancel(self) -> None:
        """Drop the attempt's result and release its resources. Call it only on the prober's thread."""


class Cancellable(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Cancel the call. Call this only on the prober's thread."""


class Prober(Protocol):
    """Runs all probes of a process on one thread; blocking work is done on other threads."""

    def soon(self, action: Callable[[], object]) -> None:
        """Call `action` on the prober's thread. Thread-safe."""

    def at(self, when: float, action: Callable[[], None]) -> Cancellable:
        """Call `action` on the prober's thread at the time `when` (`time.monotonic`). Call this only on that thread."""

    def begin(
        self,
        target: Target,
        timeout_seconds: float,
        done: Callable[[Reading], None],
        may: May,
        *,
        probe: str = "",
        first: bool = False,
    ) -> Attempt:
        """Start one attempt, which acts only while `may` returns True. Call this only on the prober's thread.

        `done` is called once, on that thread, shortly after `timeout_seconds` at the latest, counted from the reading's
        `started`; never after `cancel`.

        `probe` names the probe, which has one attempt at a time and gets a fair share of limited slots. A command is
        marked with that name. If `first` is set, commands with the same mark that a killed agent process has left
        running in the container are killed first.
        """

    def short_of(self) -> tuple[Shortage, ...]:
        """Return the machine's shortages in the last few seconds. Call this only on the prober's thread."""

    def stop(self) -> None:
        """Stop: make no more calls, release all resources, and end running commands if that can be done quickly."""
