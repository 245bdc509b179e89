"""What is running, according to the runtime. Source: pkg/kubelet/pleg. `container` is `POD` for the sandbox itself.

Events about a container name pod (namespace/name) and uid, the container's name in its pod, the attempt, and the
runtime's id. A container's state only moves forward, created < running < exited < removed; a newer `started_at` is a
new run of the same id.
"""

from __future__ import annotations

from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.prober import ProbeName, Shortage
from chronolet_schemas.registry import registered

SANDBOX = "POD"
"""The container name used for a pod's sandbox, as in the kubelet's Docker names."""


class ContainerEvent(Event, frozen=True, kw_only=True):
    """Base class for events about one container of a pod of this node."""

    pod: str
    uid: str
    container: str
    attempt: int
    id: str

    def subject(self) -> str:
        return f"container/{self.container}"


@registered
class ContainerStarted(ContainerEvent, frozen=True, kw_only=True):
    """The container is running. `started_at` is in milliseconds, according to the runtime's clock."""

    started_at: int


@registered
class ContainerDied(ContainerEvent, frozen=True, kw_only=True):
    """The container was running and is dead. `reason` is OOMKilled, Error or Completed. Times are in milliseconds, 0 if
    unknown.

    If its exit was not observed and the runtime no longer has the container, `reason` is ContainerStatusUnknown and
    `exit_code` is 137, as in the kubelet.

    `sent` are the numbers of the signals that the runtime's clients, chronolet included, had it send to this run while
    its notices were followed, oldest first: at most the last eight. `sent_at`: when the last of them was sent, 0 if
    that is not known. Empty: there was none, and the notices were followed from the run's start to its death. None:
    nothing is known, because a listing found the death, the notices were not always followed, or the log is older.
    """

    exit_code: int
    reason: str
    started_at: int
    finished_at: int
    sent: tuple[int, ...] | None = None
    sent_at: int = 0


@registered
class ContainerRemoved(ContainerEvent, frozen=True, kw_only=True):
    """The runtime no longer has the container."""


@registered
class ContainerChanged(ContainerEvent, frozen=True, kw_only=True):
    """The container is created, or its state is unclear (paused, or it cannot be inspected). If it is unclear, the last
    known state still applies.
    """

    state: str


class RunningContainer(Message, frozen=True, kw_only=True):
    """A container that was running when its log was found to be new or to have lost its newest entries. `started_at` is
    in milliseconds, according to the runtime's clock.
    """

    pod: str
    uid: str
    container: str
    attempt: int
    id: str
    started_at: int


@registered
class AdoptContainers(Command, frozen=True, kw_only=True):
    """Record these containers, which were found running, as running. Sent by the node itself when the log is new or has
    lost its newest entries.

    Each of them that the first listing lacks counts as dead.
    """

    running: tuple[RunningContainer, ...]


@registered
class ContainersAdopted(Event, frozen=True, kw_only=True):
    """A log that is new or has lost its newest entries adopted running containers; `running` is their number. Each one
    that the log did not know yet is also reported by a ContainerStarted.
    """

    running: int


@registered
class OutOfMemory(ContainerEvent, frozen=True, kw_only=True):
    """The kernel killed one of the container's processes for lack of memory. If the container is later killed by
    SIGKILL, its death is attributed to this.
    """


@registered
class StreamLost(Event, frozen=True, kw_only=True):
    """The runtime's event stream broke. A relist finds out what happened in the meantime."""

    error: str


@registered
class StreamFollowed(Event, frozen=True, kw_only=True):
    """The runtime's event stream is connected (again)."""

    server: str
    """Name and version of the engine."""
    first: bool = False
    """Whether this is the first connection since the agent started."""
    boot_id: str = ""
    """Identifies the current boot of the machine; empty if unknown."""
    endpoint: str = ""
    """The engine's address as configured, such as unix:///var/run/docker.sock; empty in older logs."""
    engine_id: str = ""
    """The engine's own id; empty in older logs, or if the engine has none."""


@registered
class RelistFailing(Event, frozen=True, kw_only=True):
    """The runtime's containers cannot be listed. Recorded once, until they can be listed again.

    `last_listed_at` is when the last successful listing began (according to the agent's clock), 0 if there has been
    none since the agent started; pleg is unhealthy once that is longer ago than `threshold_milliseconds`.
    """

    error: str
    last_listed_at: int = 0
    threshold_milliseconds: int = 0


@registered
class RelistWorking(Event, frozen=True, kw_only=True):
    """The runtime's containers can be listed (again)."""

    containers: int


@registered
class Unhealthy(Event, frozen=True, kw_only=True):
    """No listing has succeeded for too long; `message` is the kubelet's text. Holds until one succeeds."""

    message: str


@registered
class Healthy(Event, frozen=True, kw_only=True):
    """A listing succeeded again, after Unhealthy."""


class PodEvent(Event, frozen=True, kw_only=True):
    """Base class for events about a pod as a whole."""

    pod: str
    uid: str

    def subject(self) -> str:
        return f"pod/{self.uid}"


@registered
class PodUnreadable(PodEvent, frozen=True, kw_only=True):
    """A container of the pod could not be inspected. Recorded once; every listing retries."""

    error: str


@registered
class PodReadable(PodEvent, frozen=True, kw_only=True):
    """All containers of the pod can be inspected again, or the pod no longer exists.

    `changed`: events about the pod's containers accompany this one. If False, this event is what the kubelet calls a
    sync: nothing is known to have happened, and state that was uncertain can be trusted again.
    """

    changed: bool


@registered
class EventsPutOff(Event, frozen=True, kw_only=True):
    """A listing yielded more events than one step may write: `count` of them are deferred to the next listing, which
    follows immediately.
    """

    count: int


class ProbeKillEvent(Event, frozen=True, kw_only=True):
    """Base class for events about a kill: stopping one run of a container because of its liveness or startup probe.

    `at` is in milliseconds, according to the agent's clock.
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
    """A probe of this pod was unjudged, or reached its failure threshold, while the machine was short of a resource.

    Recorded at most once every 10 s per pod, and once every 10 s for all pods together while kills are held back.
    """

    pod: str
    at: int
    short_of: tuple[Shortage, ...] = ()


@registered
class ProbeKillsHeldBack(Event, frozen=True, kw_only=True):
    """Probes of `pods` pods were unjudged, or reached their failure thresholds, at about the same time while the
    machine was short of a resource.

    From now on, liveness and startup kills wait, and are limited to `kills_per_minute`.
    """

    at: int
    pods: int
    short_of: tuple[Shortage, ...]
    kills_per_minute: int


@registered
class ProbeKillsResumed(Event, frozen=True, kw_only=True):
    """Kills are immediate again: none is waiting, and for a while, none was released and no probe had trouble as in
    ProbeTroubleNoted; or the settings no longer hold kills back. `released` and `dropped` count the held kills.
    """

    at: int
    released: int
    dropped: int


@registered
class ProbeKillHeld(ProbeKillEvent, frozen=True, kw_only=True):
    """The kill is queued."""


@registered
class ProbeKillReleased(ProbeKillEvent, frozen=True, kw_only=True):
    """The container may be stopped, `held_milliseconds` after the kill was requested."""

    held_milliseconds: int = 0


@registered
class ProbeKillDropped(ProbeKillEvent, frozen=True, kw_only=True):
    """The prober withdrew the request for a held kill (KillWithdrawn): the probe succeeded, was changed or removed, or
    failed without a shortage (then the container is stopped at once); or the run that was to be stopped has ended or is
    already being stopped.
    """
