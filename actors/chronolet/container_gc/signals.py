"""What the collector's effects tell it: what there is, and what became of a removal. Times in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from chronolet_schemas import container_gc
from chronolet_schemas.envelope import Message, Signal

Stage = Literal["containers", "sandboxes", "pod_log_directories"]


class Seen(Message, frozen=True, kw_only=True):
    """A container or sandbox of this node. One whose labels do not tell whose it is has no `pod`.

    What is frozen is running. `unknown` is what neither runs nor is dead for sure. `of_this_log`: it was not made for a
    log that has been lost since.
    """

    id: str
    name: str
    pod: str = ""
    uid: str = ""
    container: str = ""
    attempt: int = 0
    created_at: int
    state: Literal["created", "running", "exited", "unknown"]
    sandbox_id: str = ""
    of_this_log: bool = True


class Folder(Message, frozen=True, kw_only=True):
    """A pod's log folder, and when something last came into it or went."""

    name: str
    changed_at: int = 0


class Link(Message, frozen=True, kw_only=True):
    """A link to a container's log. `container_dead` is also True of one that is not there any more."""

    name: str
    target_exists: bool
    container_dead: bool


class Told(Signal, frozen=True, kw_only=True):
    """Of a look: `intent` is empty for the periodic one. It says the settings that hold where it was taken.

    `parallel` is how many removals may be made at a time.
    """

    subject: str = ""
    intent: str = ""
    node: str
    policy: container_gc.Policy
    log_folder: str = ""
    log_run: str = ""
    parallel: int = 1


class Looked(Told, frozen=True, kw_only=True):
    """All that there is. `errors` are by the stage whose things could not be listed."""

    containers: Sequence[Seen] = ()
    sandboxes: Sequence[Seen] = ()
    log_folders: Sequence[Folder] = ()
    log_links: Sequence[Link] = ()
    errors: Mapping[Stage, str] = {}


class RemovalDone(Signal, frozen=True, kw_only=True):
    """It is gone, by this call or before it."""

    subject: str
    intent: str


class RemovalRefused(Signal, frozen=True, kw_only=True):
    """It is still there."""

    subject: str
    intent: str
    error: str
