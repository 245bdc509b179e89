"""Signals from the container collector's workers: scans, and the results of removals. Times are in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from chronolet_schemas import container_gc
from chronolet_schemas.envelope import Message, Signal

Stage = Literal["containers", "sandboxes", "pod_log_directories"]


class RuntimeObject(Message, frozen=True, kw_only=True):
    """A container or sandbox of this node. `pod` is empty if its labels do not identify the pod.

    A paused container is `running`. `unknown`: neither running nor certainly dead. `of_this_log`: False if it was
    created for a log that has since been lost.
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
    """A pod's log folder. `changed_at` is when an entry was last added or removed."""

    name: str
    changed_at: int = 0


class Link(Message, frozen=True, kw_only=True):
    """A link to a container's log. `container_dead` is also True if the container no longer exists."""

    name: str
    target_exists: bool
    container_dead: bool


class CollectorSettings(Signal, frozen=True, kw_only=True):
    """The settings of the process that made a scan. `intent` is empty for a periodic scan.

    `parallel` limits concurrent removals.
    """

    subject: str = ""
    intent: str = ""
    node: str
    policy: container_gc.Policy
    log_folder: str = ""
    log_run: str = ""
    parallel: int = 1


class Looked(CollectorSettings, frozen=True, kw_only=True):
    """The result of a scan: everything that exists. `errors` maps a stage to the reason why its objects could not be
    listed.
    """

    containers: Sequence[RuntimeObject] = ()
    sandboxes: Sequence[RuntimeObject] = ()
    log_folders: Sequence[Folder] = ()
    log_links: Sequence[Link] = ()
    errors: Mapping[Stage, str] = {}


class RemovalDone(Signal, frozen=True, kw_only=True):
    """Answer to Remove: the object no longer exists, no matter who removed it."""

    subject: str
    intent: str


class RemovalRefused(Signal, frozen=True, kw_only=True):
    """Answer to Remove: the object could not be removed; `error` says why."""

    subject: str
    intent: str
    error: str
