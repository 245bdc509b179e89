"""A pod as its entity knows it: folded from the pod's own events.

Comes in: nothing. Goes out: frozen Structs and look-ups in them. Next: `evolve` makes new ones, `decider` reads them,
the CLI shows them through `status`. Times are milliseconds, 0 where unknown or never.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from chronolet_schemas import pleg, pod, prober
from chronolet_schemas.devices import Answer
from chronolet_schemas.podspec import Container as Definition
from chronolet_schemas.podspec import LifecycleHandler, Pod

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
"""What a container is to its pod. A sidecar is an init container whose own restart policy is Always. One that is left
was taken out of the spec while it ran: it is stopped like any other, and is gone from the state when it is dead."""
ON_ITS_WAY: tuple[ContainerPhase, ...] = ("pulling", "image_ready", "starting")
"""The phases between the decision to start a container and its start."""

POST_START_ERROR = "PostStartHookError"
"""The reason of a container whose postStart hook has failed: it is to go, or went because of it."""

STATUS_UNKNOWN = "ContainerStatusUnknown"
"""The reason of an exit of which nothing is known: the runtime no longer had the container when it was looked for."""

SandboxPhase = Literal["absent", "starting", "failed", "running", "stopping", "dead"]


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the state's parts."""


class Hook(Record, frozen=True, kw_only=True):
    """A hook that is under way. `exec_id` is known when its exec has been made."""

    hook: pod.HookName
    handler: LifecycleHandler
    requested_at: int
    exec_id: str = ""

    @property
    def sleeps_until(self) -> int:
        """When its sleep is over; 0 where it is none."""
        return self.requested_at + self.handler.sleep.seconds * 1000 if self.handler.sleep else 0


class Exit(Record, frozen=True, kw_only=True):
    """How an attempt ended. `reason` is the word that `lastState` shows; `sandbox_id` is the sandbox it ran in.

    `read`: whatever message it left has been read, or there can be none.
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
    """A stop that was asked for. `retry_at` is set after a refusal, until it is asked for again.

    Held, it waits: for the hook `pre_stop`, which is to be asked for yet, for the hook at hand, or for its turn.
    `process_ended`: it has done its work, and the runtime has yet to say how the container ended.
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
    """The creation of an attempt ahead of its start, for this sandbox. It is under way until `id` or `failed` is
    set. `outdated`: it is not to run in that sandbox any more, so what was created is to be removed; `failed` is set
    once that is done. What was created by an `image` was created when that name meant `image_id`, after `requested_at`.
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
    def asked(self) -> bool:
        """It is still being created, or still to be removed."""
        return not self.failed and (self.outdated or not self.id)


class BackOff(Record, frozen=True, kw_only=True):
    """A container's crash loop: how long the next restart waits, and when that was last changed."""

    seconds: int
    updated_at: int


class Probing(Record, frozen=True, kw_only=True):
    """A probe that was asked for: of the run of container `id` that began at `started_at`, by the spec of `digest`.

    `result` is the last that was heard of it, empty before there is one. `skipped`: there was nobody to be asked.
    """

    probe: prober.ProbeName
    id: str
    started_at: int
    digest: str
    result: prober.ProbeResult | Literal[""] = ""
    skipped: bool = False


class Container(Record, frozen=True, kw_only=True):
    """One container of the spec. `attempt` is the one at hand; `exit` is how the last one ended that is dead.

    `sandbox_id` is the sandbox that the attempt at hand was started in.
    `reason` and `message` say why it waits. `blocked` is why it may not start as it is written. `spec_hash` is what the
    attempt at hand was started with. `waits_from` to `retry_at` is the wait of the phases that wait, told of once more
    at `tell_again_at`; `waited_seconds` is how long the last restart was put off. `post_start` is the hook to be asked
    for when it runs; `hook` is the one under way. `ahead` is the creation of the attempt that starts next. `left` is
    what the spec said of one that it no longer has.
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
        """The number of the next container to be made."""
        return self.exit.attempt + 1 if self.exit else 0

    @property
    def restarts(self) -> int:
        """What `restartCount` shows: the number of the newest container that was made."""
        if self.phase in ("running", "stopping"):
            return self.attempt
        return self.exit.attempt if self.exit else 0

    @property
    def alive(self) -> bool:
        """It runs, or may run by the time anybody looks."""
        return self.phase in ("starting", "running", "stopping")

    @property
    def busy(self) -> bool:
        """It is alive, or being created: what comes after its end waits."""
        return self.alive or self.being_created

    @property
    def uses_sandbox(self) -> bool:
        """It is alive, and has a process or may get one."""
        return self.alive and not (self.phase == "stopping" and self.stop is not None and self.stop.process_ended)

    @property
    def being_created(self) -> bool:
        """An attempt of it is being created ahead of its start, or removed because it is not wanted any more."""
        return self.ahead is not None and self.ahead.asked


class Sandbox(Record, frozen=True, kw_only=True):
    """The newest sandbox. `failures` counts starts in a row that failed, `stop_tries` refused stops.

    `retry_at` is when the next start (failed, dead) or stop (stopping) may be asked for, 0 for at once.
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


class Stray(Record, frozen=True, kw_only=True):
    """A running container under the pod's name that is not its current attempt. `stop` is None until asked for."""

    container: str
    attempt: int
    id: str
    uid: str
    stop: Stop | None = None


class Wish(Record, frozen=True, kw_only=True):
    """What a container wants of device plugins, and has. `wants`: how many devices of each resource.

    It was asked for at `asked_at`, for the `sandbox` of that attempt; awaited, `reason` and `message` say what stands
    in the way. `held` are devices, by resource, that the container had before the log. Granted: `devices` by resource,
    and what it is to be started with. `telling` is the start that plugins are being told of, by its attempt and how
    often that failed before; `told` the last one that they allowed; None if there is none.
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
    """What the pod asked of the node at `asked_at`, by the spec of this `digest`. Its containers begin beneath the
    cgroup `parent`. Awaited, `message` says which port of the node another pod holds.
    """

    phase: Literal["none", "asked", "awaited", "granted"] = "none"
    digest: str = ""
    asked_at: int = 0
    parent: str = ""
    message: str = ""


class Failure(Record, frozen=True, kw_only=True):
    """Why the pod is over before its time."""

    reason: str
    message: str


class Termination(Record, frozen=True, kw_only=True):
    """The end that was asked for. `resumed`: it began in a log that was lost."""

    reason: pod.EndReason
    grace_period_seconds: int
    deadline: int
    resumed: bool = False


class Cleanup(Record, frozen=True, kw_only=True):
    """The clean-up at the end. `retry_at` is set after a refusal, until it is asked for again."""

    tries: int = 0
    retry_at: int = 0


class Successor(Record, frozen=True, kw_only=True):
    """The pod of the same name that begins when this one has ended."""

    uid: str
    source: str
    digest: str
    manifest: Pod
    pull_secrets: dict[str, str] = {}


class State(Record, frozen=True, kw_only=True):
    """A pod's life under one uid; `uid` is empty before the first spec.

    `containers` are in the order of their start: init containers and sidecars, app containers, ephemeral ones; then
    those that are left.
    `unkept`: the spec changed while something of it ran, and the new one is not known to lie beside the log yet.
    `admission` are the kinds that are asked before its sandbox, None while nothing has been needed of any; `wishes` is
    what its containers want of device plugins, by their names, `share` what the pod has of the node.
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
    wishes: dict[str, Wish] = {}
    share: NodeShare = NodeShare()
    failure: Failure | None = None
    termination: Termination | None = None
    cleanup: Cleanup | None = None
    successor: Successor | None = None

    @property
    def reached_at(self) -> str:
        """The address at which the node reaches what listens in the pod. On the node's own network there always is one,
        also where the node has no address of its own.
        """
        return self.sandbox.ip or ("127.0.0.1" if self.manifest.spec.host_network else "")

    @property
    def over(self) -> bool:
        """Nothing of it is to be started any more, by somebody's wish or because it has failed."""
        return self.termination is not None or self.failure is not None

    def container(self, name: str) -> Container | None:
        """The container of this name, None if the spec has none."""
        return next((one for one in self.containers if one.name == name), None)

    def of_kind(self, *kinds: ContainerKind) -> tuple[Container, ...]:
        """The containers that are one of these."""
        return tuple(one for one in self.containers if one.kind in kinds)

    def definition(self, name: str) -> Definition:
        """What the spec says of one of `containers`, or said of one that is left."""
        left = (one.left for one in self.containers if one.left is not None)
        return next(one for one in (*(named for _, named in definitions(self.manifest)), *left) if one.name == name)

    def stray(self, container_id: str) -> Stray | None:
        """The stray of this id."""
        return next((one for one in self.strays if one.id == container_id), None)


def definitions(manifest: Pod) -> Iterator[tuple[ContainerKind, Definition]]:
    """Every container of a spec, in the order of `State.containers`."""
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
    """A container's path in its pod's spec, as KubeEvents write it."""
    return f"spec.{_FIELDS[kind]}{{{name}}}"
