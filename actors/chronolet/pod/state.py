"""The state of a pod entity, folded from the pod's own events.

Input: none. Output: frozen Structs with look-ups. Next: `evolve` creates new ones, `decider` reads them, the CLI shows
them through `status`. Times are milliseconds; 0 means unknown or never.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from chronolet_schemas import pleg, pod, prober
from chronolet_schemas.devices import Answer
from chronolet_schemas.podspec import Container as Definition
from chronolet_schemas.podspec import LifecycleHandler, Pod

SHARDS = 4
FORMAT = 1
"""Version of the states in snapshots: a snapshot with another number is ignored."""

ContainerPhase = Literal[
    "waiting",
    "pulling",
    "image_failed",
    "image_back_off",
    "image_ready",
    "starting",
    "start_failed",
    "running",
    "stopping",
    "exited",
    "backing_off",
]
ContainerKind = Literal["init", "sidecar", "app", "ephemeral", "left"]
"""The role of a container in its pod. A sidecar is an init container whose own restart policy is Always. `left`: it was
removed from the spec while it ran; it is stopped like any other container, and removed from the state once it is
dead."""
ON_ITS_WAY: tuple[ContainerPhase, ...] = ("pulling", "image_ready", "starting")
"""The phases between the decision to start a container and its start."""

POST_START_ERROR = "PostStartHookError"
"""The reason shown for a container that is being stopped, or was stopped, because its postStart hook failed."""

STATUS_UNKNOWN = "ContainerStatusUnknown"
"""The reason given for an exit whose circumstances are unknown, because the runtime no longer had the container."""

SandboxPhase = Literal["absent", "starting", "failed", "running", "stopping", "dead"]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base class of all parts of the state."""


class Hook(Record, frozen=True, kw_only=True):
    """A hook in progress. `exec_id` is set once its exec has been created."""

    hook: pod.HookName
    handler: LifecycleHandler
    requested_at: int
    exec_id: str = ""

    @property
    def sleeps_until(self) -> int:
        """When a sleep hook ends; 0 for other hooks."""
        return self.requested_at + self.handler.sleep.seconds * 1000 if self.handler.sleep else 0


class Exit(Record, frozen=True, kw_only=True):
    """The exit of an attempt. `reason` is shown in `lastState`; `sandbox_id` is the sandbox in which it ran.

    `read`: whether its termination message has been read, or it cannot have one.
    """

    attempt: int
    id: str
    sandbox_id: str = ""
    exit_code: int
    reason: str
    message: str = ""
    started_at: int = 0
    finished_at: int = 0
    read: bool = False


class Stop(Record, frozen=True, kw_only=True):
    """A requested stop. `retry_at` is set after a refusal, until the next request.

    `held`: whether no signal may be sent yet, because the stop waits for the hook `pre_stop`, which is not requested
    yet, for the current hook, or for its turn. `process_ended`: whether the process has ended but the runtime has not
    reported the exit yet.
    """

    grace_period_seconds: int
    deadline: int
    reason: pod.StopReason
    tries: int = 0
    retry_at: int = 0
    held: bool = False
    pre_stop: LifecycleHandler | None = None
    process_ended: bool = False


class Ahead(Record, frozen=True, kw_only=True):
    """The creation of an attempt ahead of its start, for one sandbox. It is in progress until `id` or `failed` is set.
    `outdated`: whether the container must no longer run in that sandbox and has to be removed; `failed` is set once
    that is done. If `image` is set, that name resolved to `image_id` when the container was created, after
    `requested_at`.
    """

    attempt: int
    sandbox_id: str
    spec_hash: str
    image_id: str
    image: str = ""
    requested_at: int = 0
    id: str = ""
    failed: bool = False
    outdated: bool = False

    @property
    def pending(self) -> bool:
        """Whether the container's creation or removal is unfinished."""
        return not self.failed and (self.outdated or not self.id)


class BackOff(Record, frozen=True, kw_only=True):
    """A container's crash-loop back-off: the wait before the next restart, and when it last changed or the container
    last started.
    """

    seconds: int
    updated_at: int


class Probing(Record, frozen=True, kw_only=True):
    """A probe requested by the spec with this `digest`, for the run of container `id` that began at `started_at`.

    `result`: the latest result, empty before the first. `skipped`: whether the probe was skipped because no prober was
    hosted.
    """

    probe: prober.ProbeName
    id: str
    started_at: int
    digest: str
    result: prober.ProbeResult | Literal[""] = ""
    skipped: bool = False


class Container(Record, frozen=True, kw_only=True):
    """One container of the spec. `attempt` is the current attempt; `exit` describes how the latest dead attempt ended.

    `sandbox_id` and `spec_hash`: the sandbox and the definition with which the current attempt was started. `reason`
    and `message`: why it waits. `blocked`: why its definition may not start. `waits_from` and `retry_at`: the start and
    the end of the current wait; `tell_again_at`: when it is next reported. `waited_seconds`: the delay of the latest
    restart. `post_start`: the hook to request once the container is running. `hook`: the hook in progress. `ahead`: the
    creation of an attempt ahead of its start. `left`: the definition of a container that is no longer in the spec.
    """

    name: str
    kind: ContainerKind = "app"
    phase: ContainerPhase = "waiting"
    attempt: int = 0
    id: str = ""
    sandbox_id: str = ""
    spec_hash: str = ""
    image: str = ""
    policy: str = ""
    image_id: str = ""
    image_digest: str = ""
    image_size_bytes: int = 0
    image_failures: int = 0
    start_failures: int = 0
    requested_at: int = 0
    started_at: int = 0
    waits_from: int = 0
    retry_at: int = 0
    tell_again_at: int = 0
    reason: str = ""
    message: str = ""
    blocked: str = ""
    ahead: Ahead | None = None
    post_start: LifecycleHandler | None = None
    hook: Hook | None = None
    stop: Stop | None = None
    exit: Exit | None = None
    back_off: BackOff | None = None
    waited_seconds: int = 0
    probing: tuple[Probing, ...] = ()
    left: Definition | None = None

    @property
    def next_attempt(self) -> int:
        """The number of the next attempt to create. Only meaningful while no attempt is alive: otherwise it may be the
        number of the live attempt, or 0.
        """
        return self.exit.attempt + 1 if self.exit else 0

    @property
    def restarts(self) -> int:
        """The `restartCount`: the number of the newest attempt that ran or could not be run."""
        if self.phase in ("running", "stopping"):
            return self.attempt
        return self.exit.attempt if self.exit else 0

    @property
    def alive(self) -> bool:
        """Whether the container is running, or may already be running."""
        return self.phase in ("starting", "running", "stopping")

    @property
    def in_post_start(self) -> bool:
        """Whether the container is running with an unfinished postStart hook: containers that start after it wait."""
        return self.phase == "running" and (self.post_start is not None or self.hook is not None)

    @property
    def busy(self) -> bool:
        """Whether the container is alive or being created: steps that must follow its end have to wait."""
        return self.alive or self.being_created

    @property
    def uses_sandbox(self) -> bool:
        """Whether the container still uses the sandbox: it is alive, and its process is not known to have ended."""
        return self.alive and not (self.phase == "stopping" and self.stop is not None and self.stop.process_ended)

    @property
    def being_created(self) -> bool:
        """Whether an attempt is being created ahead of its start, or removed as outdated."""
        return self.ahead is not None and self.ahead.pending


class Sandbox(Record, frozen=True, kw_only=True):
    """The newest sandbox. `failures` counts consecutive failed starts, `stop_tries` refused stops.

    `retry_at` is when the next start (in the phases failed and dead; 0 means immediately) or, after a refusal, the next
    stop (in the phase stopping) may be requested. `finished_at` is when the dead sandbox exited.
    """

    phase: SandboxPhase = "absent"
    attempt: int = 0
    id: str = ""
    ip: str = ""
    host_ip: str = ""
    spec_hash: str = ""
    requested_at: int = 0
    started_at: int = 0
    failures: int = 0
    stop_tries: int = 0
    retry_at: int = 0
    message: str = ""
    blocked: str = ""
    finished_at: int = 0


class Stray(Record, frozen=True, kw_only=True):
    """A running container under the pod's name that is not a current attempt. `stop` is None until it is requested."""

    container: str
    attempt: int
    id: str
    uid: str
    stop: Stop | None = None


class DeviceClaim(Record, frozen=True, kw_only=True):
    """A container's claim to devices of plugins. `wants`: the number of devices for each resource.

    The claim was last requested at `asked_at`, for the sandbox with attempt number `sandbox`. While it is awaited,
    `reason` and `message` name the obstacle. `held`: devices by resource that the container had before the log began.
    Once it is granted, `devices` are its devices by resource, and `answer` contains the plugins' options for its start.
    `telling`: the start for which PreStart is requested, as (attempt, failures before it); `told`: the latest start
    that the plugins allowed; each is None if there is none.
    """

    wants: dict[str, int]
    phase: Literal["found", "asked", "awaited", "granted"]
    asked_at: int = 0
    sandbox: int = 0
    reason: str = ""
    message: str = ""
    held: dict[str, tuple[str, ...]] = {}
    devices: dict[str, tuple[str, ...]] = {}
    answer: Answer = Answer()
    pre_start: bool = False
    telling: tuple[int, int] | None = None
    told: tuple[int, int] | None = None


class NodeShare(Record, frozen=True, kw_only=True):
    """The pod's share of the node, requested at `asked_at` for the spec with this `digest`. Its containers start below
    the cgroup `parent`. While it is awaited, `message` names the host port that another pod holds.
    """

    phase: Literal["none", "asked", "awaited", "granted"] = "none"
    digest: str = ""
    asked_at: int = 0
    parent: str = ""
    message: str = ""


class Failure(Record, frozen=True, kw_only=True):
    """The reason and the message of the failure of the whole pod."""

    reason: str
    message: str


class Termination(Record, frozen=True, kw_only=True):
    """The requested termination. `resumed`: whether it began in a log that was lost."""

    reason: pod.EndReason
    grace_period_seconds: int
    deadline: int
    resumed: bool = False


class Cleanup(Record, frozen=True, kw_only=True):
    """The final clean-up. `retry_at` is set after a refusal, until the next request."""

    tries: int = 0
    retry_at: int = 0


class Successor(Record, frozen=True, kw_only=True):
    """A pod with the same name, which starts after this one has ended."""

    uid: str
    source: str
    digest: str
    manifest: Pod
    pull_secrets: dict[str, str] = {}


class State(Record, frozen=True, kw_only=True):
    """A pod's life under one uid; `uid` is empty before the first spec.

    `containers` are in start order: init containers and sidecars, app containers, ephemeral ones, then those whose kind
    is `left`. `unkept`: whether the spec changed while the pod had a sandbox and its copy in the state folder is not
    yet confirmed. `admission`: the kinds that must admit the pod before its sandbox starts; None until one is needed.
    `wishes`: the device claims by container name. `share`: the pod's share of the node.
    """

    pod: str = ""
    uid: str = ""
    source: str = ""
    digest: str = ""
    manifest: Pod = Pod()
    accepted_at: int = 0
    sandbox_hash: str = ""
    container_hashes: dict[str, str] = {}
    pull_secrets: dict[str, str] = {}
    unkept: bool = False
    sandbox: Sandbox = Sandbox()
    containers: tuple[Container, ...] = ()
    strays: tuple[Stray, ...] = ()
    admission: tuple[str, ...] | None = None
    wishes: dict[str, DeviceClaim] = {}
    share: NodeShare = NodeShare()
    failure: Failure | None = None
    termination: Termination | None = None
    cleanup: Cleanup | None = None
    successor: Successor | None = None

    @property
    def reached_at(self) -> str:
        """The address at which the node reaches servers in the pod; empty if the pod has none. A pod on the host
        network always has one, even on a node without an address.
        """
        return self.sandbox.ip or ("127.0.0.1" if self.manifest.spec.host_network else "")

    @property
    def over(self) -> bool:
        """Whether no part of the pod may be started any more, because its end was requested or it has failed."""
        return self.termination is not None or self.failure is not None

    def container(self, name: str) -> Container | None:
        """Return the container with this name; None if there is none."""
        return next((one for one in self.containers if one.name == name), None)

    def of_kind(self, *kinds: ContainerKind) -> tuple[Container, ...]:
        """Return the containers of these kinds, in start order."""
        return tuple(one for one in self.containers if one.kind in kinds)

    def definition(self, name: str) -> Definition:
        """Return the definition of one of `containers`: the one in the spec, or the last one if the container's kind is
        `left`.
        """
        left = (one.left for one in self.containers if one.left is not None)
        return next(one for one in (*(named for _, named in definitions(self.manifest)), *left) if one.name == name)

    def stray(self, container_id: str) -> Stray | None:
        """Return the stray with this id; None if there is none."""
        return next((one for one in self.strays if one.id == container_id), None)


def definitions(manifest: Pod) -> Iterator[tuple[ContainerKind, Definition]]:
    """Yield every container of a spec with its kind, in the order of `State.containers`."""
    spec = manifest.spec
    for one in spec.init_containers:
        yield "sidecar" if one.restart_policy == "Always" else "init", one
    for one in spec.containers:
        yield "app", one
    for one in spec.ephemeral_containers:
        yield "ephemeral", one


SANDBOX = pleg.SANDBOX

_FIELDS: Mapping[ContainerKind, str] = {
    "init": "initContainers",
    "sidecar": "initContainers",
    "app": "containers",
    "ephemeral": "ephemeralContainers",
    "left": "containers",
}


def field_path(kind: ContainerKind, name: str) -> str:
    """Return a container's path in its pod's spec, as in a KubeEvent's fieldPath."""
    return f"spec.{_FIELDS[kind]}{{{name}}}"
