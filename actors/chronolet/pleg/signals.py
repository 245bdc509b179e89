"""What the runtime says, as pleg's standing effects pass it on.

Comes in: nothing. Goes out: Signal Structs. Next: `decider`. All are about containers with this node's label only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from chronolet_schemas.envelope import Message, Signal


class Seen(Message, frozen=True, kw_only=True):
    """One container as an inspect or a listing tells it. `container` is POD for a sandbox.

    `state` is created, running, exited, removed (confirmed by a 404) or unknown. `detailed` False: exit code, reason
    and times are not known. Times in milliseconds, 0 where unknown.
    """

    pod: str
    uid: str
    container: str
    attempt: int
    id: str
    state: Literal["created", "running", "exited", "removed", "unknown"]
    exit_code: int = 0
    reason: str = ""
    started_at: int = 0
    finished_at: int = 0
    detailed: bool = True


class Unread(Message, frozen=True, kw_only=True):
    """A pod that cannot be inspected as a whole."""

    pod: str
    uid: str
    error: str


class StreamOpened(Signal, frozen=True, kw_only=True):
    """The event stream stands. `server` is the engine's name and version; `first`: none did before in this process."""

    server: str
    first: bool = False
    boot_id: str = ""
    endpoint: str = ""
    engine_id: str = ""


class StreamBroken(Signal, frozen=True, kw_only=True):
    """The event stream ended or cannot be opened."""

    error: str


class Noticed(Signal, frozen=True, kw_only=True):
    """One line of the event stream. `at` is its time by the runtime's clock.

    For `die` the worker may add what an inspect told (`started_at`, `finished_at`); OOM comes as an `oom` before it.
    """

    action: Literal["create", "start", "die", "destroy", "oom"]
    pod: str
    uid: str
    container: str
    attempt: int
    id: str
    at: int
    exit_code: int = 0
    started_at: int = 0
    finished_at: int = 0


class Relisted(Signal, frozen=True, kw_only=True):
    """A complete listing begun at `began_at` (milliseconds, by the agent's clock).

    `seen` holds what was inspected: what is new, what differs from the last listing, what is confirmed gone (an id
    never comes back, so a 404 needs no other proof). `unread` are the pods of which something could not be inspected,
    and is to be by the next listing. `count` is how many containers the whole listing had. `partial`: the rest of the
    listing follows, so what this part does not name is not known to be well.
    """

    began_at: int
    count: int
    seen: Sequence[Seen] = ()
    unread: Sequence[Unread] = ()
    partial: bool = False


class RelistFailed(Signal, frozen=True, kw_only=True):
    """The runtime could not be listed. `last_listed_at` and `threshold_milliseconds` as in `pleg.RelistFailing`."""

    error: str
    last_listed_at: int = 0
    threshold_milliseconds: int = 0
