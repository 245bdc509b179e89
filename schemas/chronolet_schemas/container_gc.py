"""Collection of dead containers, dead sandboxes and left-over log folders. Source: kuberuntime_gc.go.

A run is triggered by its period, a request or a full disk. It records what it will remove and by which rule, the
outcome of each removal, and a summary; a run with nothing to remove records only the summary.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.registry import registered

Trigger = Literal["period", "request", "disk"]
What = Literal["container", "sandbox", "log_folder", "log_link"]

Rule = Literal[
    # reasons to remove an object
    "unidentified",
    "deleted_pod",
    "terminated_pod",
    "per_container_limit",
    "share_of_total",
    "total_limit",
    "older_sandbox",
    "dangling",
    # reasons to keep an object
    "running",
    "ready",
    "being_made",
    "young",
    "news_awaited",
    "left_alone",
    "within_limits",
    "newest_sandbox",
    "has_containers",
    "known_pod",
    "sources_not_ready",
    "not_dangling",
]
"""The rule that decided on an object."""


class Policy(Message, frozen=True, kw_only=True):
    """The collector's settings. A negative number of containers means no limit."""

    min_age_milliseconds: int = 0
    """Minimum age, counted from a container's creation."""
    max_per_container: int = 1
    max_containers: int = -1


class Victim(Message, frozen=True, kw_only=True):
    """An object to remove. `name` is shown to people; `stop`: the object must be stopped first.

    `container` is the container's name within its pod, `sandbox_id` the sandbox that a container joined.
    """

    what: What
    id: str
    name: str
    pod: str = ""
    uid: str = ""
    rule: Rule
    stop: bool = False
    container: str = ""
    sandbox_id: str = ""


@registered
class CollectContainers(Command, frozen=True, kw_only=True):
    """`gc run`: start a run now, or as soon as the current one has finished.

    `left_alone`: the run removes only objects created for a lost log.
    """

    left_alone: bool = False


@registered
class PolicySet(Event, frozen=True, kw_only=True):
    """These settings of the named node are in force from now on.

    `log_folder` contains the logs of the node's pods; `log_run` is the run of this log, with which the containers that
    it requests are labelled.
    """

    node: str
    policy: Policy
    log_folder: str = ""
    log_run: str = ""


class PodEvent(Event, frozen=True, kw_only=True):
    """Base class for events about one pod."""

    pod: str
    uid: str

    def subject(self) -> str:
        return f"pod/{self.uid}"


@registered
class PodNoted(PodEvent, frozen=True, kw_only=True):
    """A pod exists, for the first time or again: its dead containers are kept within the limits."""


@registered
class PodFinished(PodEvent, frozen=True, kw_only=True):
    """A pod has finished. It can be inspected until it is forgotten; if the disk is full, its dead containers are
    removed.
    """


@registered
class PodForgotten(PodEvent, frozen=True, kw_only=True):
    """A pod no longer exists: everything left of it may be removed."""


@registered
class SourcesReady(Event, frozen=True, kw_only=True):
    """All sources of pods have been read once: from now on, an unknown pod is one that no source requests."""


@registered
class RunRequested(Event, frozen=True, kw_only=True):
    """A run in addition to the periodic ones was requested. `request` is the id of the command, empty without a
    command.

    `left_alone` has the same meaning as in CollectContainers.
    """

    trigger: Trigger
    request: str = ""
    left_alone: bool = False


class RunEvent(Event, frozen=True, kw_only=True):
    """Base class for events about one run; runs are numbered."""

    run: int

    def subject(self) -> str:
        return f"run/{self.run}"


@registered
class RunStarted(RunEvent, frozen=True, kw_only=True):
    """Intent: remove these objects, and nothing else. `kept` counts all other objects, by rule; `at` is in
    milliseconds.

    Removals start in this order, `parallel` at a time: first containers, then sandboxes, then logs. `error` names the
    stages whose objects could not be listed.
    """

    trigger: Trigger
    request: str = ""
    at: int
    victims: tuple[Victim, ...]
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""
    parallel: int = 1


class VictimEvent(RunEvent, frozen=True, kw_only=True):
    """Base class for the outcome of one removal."""

    what: What
    id: str
    name: str
    pod: str = ""
    uid: str = ""
    rule: Rule


@registered
class Removed(VictimEvent, frozen=True, kw_only=True):
    """The object no longer exists."""


@registered
class NotRemoved(VictimEvent, frozen=True, kw_only=True):
    """The object stays: it could not be removed (`error` says why), or an object that depends on it stayed. The next
    run reconsiders it.
    """

    error: str


@registered
class RunFinished(RunEvent, frozen=True, kw_only=True):
    """The run has ended. `error` is why it failed, in the kubelet's form; a refused removal alone is not a failure."""

    trigger: Trigger
    request: str = ""
    at: int
    milliseconds: int = 0
    removed: int = 0
    failed: int = 0
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""
