"""The collection of dead containers, dead sandboxes and left-over log folders. Source: kuberuntime_gc.go.

A run is begun by its period, by a request, or by a full disk. It says what it is going to remove and by which rule,
what became of each of these, and at its end how it went; a run that has nothing to remove only says the last.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.registry import registered

Trigger = Literal["period", "request", "disk"]
What = Literal["container", "sandbox", "log_folder", "log_link"]

Rule = Literal[
    # why something goes
    "unidentified",
    "deleted_pod",
    "terminated_pod",
    "per_container_limit",
    "share_of_total",
    "total_limit",
    "older_sandbox",
    "dangling",
    # why something stays
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
"""What decided over an object, in one word."""


class Policy(Message, frozen=True, kw_only=True):
    """What the settings say. A negative number of containers is no limit."""

    min_age_milliseconds: int = 0
    """Counted from a container's creation."""
    max_per_container: int = 1
    max_containers: int = -1


class Victim(Message, frozen=True, kw_only=True):
    """Something that is to go. `name` is what people know it by; `stop` says that it has to be stopped first.

    `container` is its name within its pod, `sandbox_id` is the sandbox that a container joined.
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
    """`gc run`: begin a run now, or as soon as the present one is over.

    `left_alone`: the run removes what was made for a log that was lost, and nothing else.
    """

    left_alone: bool = False


@registered
class PolicySet(Event, frozen=True, kw_only=True):
    """From now on these settings hold, on the node of that name. `log_folder` is where its pods' logs lie; `log_run`
    is this log, as its containers are labelled.
    """

    node: str
    policy: Policy
    log_folder: str = ""
    log_run: str = ""


class PodEvent(Event, frozen=True, kw_only=True):
    """What is known of a pod."""

    pod: str
    uid: str

    def subject(self) -> str:
        return f"pod/{self.uid}"


@registered
class PodNoted(PodEvent, frozen=True, kw_only=True):
    """A pod lives, for the first time or again: its dead containers are kept as far as the limits allow."""


@registered
class PodFinished(PodEvent, frozen=True, kw_only=True):
    """A pod is over. Until it is forgotten it can be looked at, but a full disk takes its dead containers."""


@registered
class PodForgotten(PodEvent, frozen=True, kw_only=True):
    """A pod's life is over: whatever is left of it may go."""


@registered
class SourcesReady(Event, frozen=True, kw_only=True):
    """All sources of pods have been read once: a pod that is not known from now on is one that nobody wants."""


@registered
class RunRequested(Event, frozen=True, kw_only=True):
    """A run beside the periodic ones is to begin; `request` is the command's id, empty where nobody asked.

    `left_alone` as in CollectContainers.
    """

    trigger: Trigger
    request: str = ""
    left_alone: bool = False


class RunEvent(Event, frozen=True, kw_only=True):
    """About one run; they are numbered."""

    run: int

    def subject(self) -> str:
        return f"run/{self.run}"


@registered
class RunStarted(RunEvent, frozen=True, kw_only=True):
    """Intent: these go, and nothing else. `kept` counts what stays, by rule; `at` in milliseconds.

    They are begun in this order, `parallel` at a time; containers come before sandboxes, and these before logs. `error`
    tells which part of the node could not be looked at.
    """

    trigger: Trigger
    request: str = ""
    at: int
    victims: tuple[Victim, ...]
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""
    parallel: int = 1


class VictimEvent(RunEvent, frozen=True, kw_only=True):
    """What became of one object of the run."""

    what: What
    id: str
    name: str
    pod: str = ""
    uid: str = ""
    rule: Rule


@registered
class Removed(VictimEvent, frozen=True, kw_only=True):
    """It is gone."""


@registered
class NotRemoved(VictimEvent, frozen=True, kw_only=True):
    """It stays: the runtime refused, or what it depends on stayed. The next run looks again."""

    error: str


@registered
class RunFinished(RunEvent, frozen=True, kw_only=True):
    """The run is over. `error` is why it failed, in the kubelet's form; a refused removal alone is no failure."""

    trigger: Trigger
    request: str = ""
    at: int
    milliseconds: int = 0
    removed: int = 0
    failed: int = 0
    kept: dict[str, int] = msgspec.field(default_factory=dict)
    error: str = ""
