"""What runs, as the runtime says it. Source: pkg/kubelet/pleg. `container` is `POD` for the sandbox itself.

Every event names pod (namespace/name) and uid, the container's name in its pod, the attempt, and the runtime's id.
A container only moves created < running < exited < removed; a newer `started_at` is a new run of the same id.
"""

from __future__ import annotations

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.prober import ProbeName, Shortage
from chronolet_schemas.registry import registered

SANDBOX = "POD"
"""The name that stands for a pod's sandbox where a container's name is asked for, as in the kubelet's Docker names."""


class ContainerEvent(Event, frozen=True, kw_only=True):
    """About one container of a pod of this node."""

    pod: str
    uid: str
    container: str
    attempt: int
    id: str

    def subject(self) -> str:
        return f"container/{self.container}"


@registered
class ContainerStarted(ContainerEvent, frozen=True, kw_only=True):
    """It runs. `started_at` in milliseconds, by the runtime's clock."""

    started_at: int


@registered
class ContainerDied(ContainerEvent, frozen=True, kw_only=True):
    """It ran and is dead. `reason` is OOMKilled, Error or Completed; times in milliseconds, 0 where unknown.

    Where nobody saw it end and the runtime no longer has it, `reason` is ContainerStatusUnknown and `exit_code` is the
    137 that the kubelet puts there.
    """

    exit_code: int
    reason: str
    started_at: int
    finished_at: int


@registered
class ContainerRemoved(ContainerEvent, frozen=True, kw_only=True):
    """The runtime no longer has it."""


@registered
class ContainerChanged(ContainerEvent, frozen=True, kw_only=True):
    """Its state cannot be told (created, paused, or its inspect failed); lowers nothing that was known."""

    state: str


class RunningContainer(Message, frozen=True, kw_only=True):
    """A container that ran when a new log began. `started_at` in milliseconds, by the runtime's clock."""

    pod: str
    uid: str
    container: str
    attempt: int
    id: str
    started_at: int


@registered
class AdoptContainers(Command, frozen=True, kw_only=True):
    """The log is new, and these were seen to run before it: what is not there any more when all are listed, died.

    Sent by the node itself.
    """

    running: tuple[RunningContainer, ...]


@registered
class ContainersAdopted(Event, frozen=True, kw_only=True):
    """So many containers were told to a new log as running; of each that was news, a ContainerStarted says so."""

    running: int


@registered
class OutOfMemory(ContainerEvent, frozen=True, kw_only=True):
    """The kernel killed a process of it for want of memory. If it dies of a KILL after this, that was why."""


@registered
class StreamLost(Event, frozen=True, kw_only=True):
    """The runtime's event stream broke. What happened meanwhile comes by the relist."""

    error: str


@registered
class StreamFollowed(Event, frozen=True, kw_only=True):
    """The runtime's event stream is being followed (again)."""

    server: str
    """Name and version of the engine."""
    first: bool = False
    """The agent has just been started."""
    boot_id: str = ""
    """Of the machine, from one boot to the next; empty where it is not known."""
    endpoint: str = ""
    """The engine's address as the agent was given it, such as unix:///var/run/docker.sock; empty in older logs."""
    engine_id: str = ""
    """The engine's own id; empty in older logs, and where the engine has none."""


@registered
class RelistFailing(Event, frozen=True, kw_only=True):
    """The runtime cannot be listed. Said once, until it can again.

    `last_listed_at` is when the last listing that worked began (by the agent's clock), 0 if none has since the agent
    started; when that is longer ago than `threshold_milliseconds`, pleg is unhealthy.
    """

    error: str
    last_listed_at: int = 0
    threshold_milliseconds: int = 0


@registered
class RelistWorking(Event, frozen=True, kw_only=True):
    """The runtime can be listed (again)."""

    containers: int


@registered
class Unhealthy(Event, frozen=True, kw_only=True):
    """No listing has worked for too long; `message` in the kubelet's words. Holds until one does."""

    message: str


@registered
class Healthy(Event, frozen=True, kw_only=True):
    """A listing worked again, after Unhealthy."""


class PodEvent(Event, frozen=True, kw_only=True):
    """About what can be told of one pod as a whole."""

    pod: str
    uid: str

    def subject(self) -> str:
        return f"pod/{self.uid}"


@registered
class PodUnreadable(PodEvent, frozen=True, kw_only=True):
    """A container of the pod could not be inspected. Said once; it is tried again by each listing until it can."""

    error: str


@registered
class PodReadable(PodEvent, frozen=True, kw_only=True):
    """All containers of the pod can be inspected again, or it is gone.

    `changed` says that events of the pod's containers come with this one. Without them it is what the kubelet calls a
    sync: nothing is known to have happened, and what was unknown for a while is to be trusted again.
    """

    changed: bool


@registered
class EventsPutOff(Event, frozen=True, kw_only=True):
    """One listing told more than one step may say: so many events are left for the next one, which comes at once."""

    count: int


class ProbeKillEvent(Event, frozen=True, kw_only=True):
    """About the stop of one run of a container that its liveness or startup probe calls for. `at` by the agent's clock,
    in milliseconds.
    """

    pod: str
    uid: str
    container: str
    probe: ProbeName
    id: str
    started_at: int
    at: int

    def subject(self) -> str:
        return f"container/{self.container}"


@registered
class ProbeTroubleNoted(Event, frozen=True, kw_only=True):
    """A probe of this pod failed, or could not be judged, while the machine was short of something. Written at most
    once in 10 s for a pod, and for all pods together while kills are held back.
    """

    pod: str
    at: int
    short_of: tuple[Shortage, ...] = ()


@registered
class ProbeKillsHeldBack(Event, frozen=True, kw_only=True):
    """Probes of so many `pods` failed at about the same time while the machine was short of something: from now on
    liveness and startup kills wait, and are limited to `kills_per_minute`.
    """

    at: int
    pods: int
    short_of: tuple[Shortage, ...]
    kills_per_minute: int


@registered
class ProbeKillsResumed(Event, frozen=True, kw_only=True):
    """No probe has had trouble for a while and no kill waits: kills are carried out at once again."""

    at: int
    released: int
    dropped: int


@registered
class ProbeKillHeld(ProbeKillEvent, frozen=True, kw_only=True):
    """The kill waits for its turn."""


@registered
class ProbeKillReleased(ProbeKillEvent, frozen=True, kw_only=True):
    """The container may be stopped, `held_milliseconds` after the kill was asked for."""

    held_milliseconds: int = 0


@registered
class ProbeKillDropped(ProbeKillEvent, frozen=True, kw_only=True):
    """A kill that was held is not wanted any more: the container recovered or is gone."""
