"""A pod's life, as its entity decides it. Source: pkg/kubelet/pod_workers.go, kuberuntime, status.

Every event names `pod` (namespace/name) and `uid`. Times are milliseconds since the epoch, by the agent's clock
unless said. An intent (`...Requested`) asks for an effect; the event that closes it repeats its attempt.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from chronolet_schemas.devices import Answer
from chronolet_schemas.envelope import Command, Event, Message
from chronolet_schemas.podspec import LifecycleHandler, Pod, Probe, RestartPolicy
from chronolet_schemas.prober import ProbeName, ProbeResult
from chronolet_schemas.registry import registered
from chronolet_schemas.resources import PodNeeds

EndReason = Literal["Deleted", "Replaced"]
"""Why a pod ends: nobody wants it any more, or a newer pod of the name waits."""

StopReason = Literal[
    "Deleted",
    "Replaced",
    "SpecChanged",
    "SandboxGone",
    "Superseded",
    "PodCompleted",
    "PodFailed",
    "FailedPostStartHook",
    "LivenessFailed",
    "StartupFailed",
]
"""Why a container is stopped: the pod goes, a newer pod of the name waits, its definition changed, its sandbox
died or is to be another one, it is no longer its pod's current attempt, the pod's work is done, the pod has failed, or
its own postStart hook, liveness or startup probe has."""

HookName = Literal["PostStart", "PreStop"]

HookOutcome = Literal["Succeeded", "Failed", "Unfinished", "Unknown"]
"""How a hook ended. `Unfinished`: not before its deadline. `Unknown`: it was begun, and nobody can tell any more."""


class PodEvent(Event, frozen=True, kw_only=True):
    """About a pod."""

    pod: str
    uid: str


class ContainerEvent(PodEvent, frozen=True, kw_only=True):
    """About one container of a pod; `attempt` counts its starts from 0."""

    container: str
    attempt: int

    def subject(self) -> str:
        return f"container/{self.container}"


class SandboxEvent(PodEvent, frozen=True, kw_only=True):
    """About a pod's sandbox; `attempt` counts sandboxes from 0."""

    attempt: int

    def subject(self) -> str:
        return "sandbox"


@registered
class SpecAccepted(PodEvent, frozen=True, kw_only=True):
    """The pod's life under `uid` begins, or goes on with a changed spec. `accepted_at` is its start time.

    `sandbox_hash` and `container_hashes` (by name) stand for the definitions: they are compared with the hash that a
    sandbox or container was started with, and are written down so that no later release hashes differently.
    """

    source: str
    digest: str
    manifest: Pod
    accepted_at: int
    sandbox_hash: str
    container_hashes: dict[str, str]


@registered
class PullSecretsChanged(PodEvent, frozen=True, kw_only=True):
    """The Secrets that the registries of the pod's images may be told: digests by name, of those that there are."""

    pull_secrets: dict[str, str]


@registered
class SpecKept(PodEvent, frozen=True, kw_only=True):
    """The changed spec of this digest lies beside the log, for the day that the log is lost."""

    digest: str


class FoundContainer(Message, frozen=True, kw_only=True):
    """One container of a pod as the runtime had it when a new log began; `container` is POD for a sandbox.

    What was made and never started is `created`; what could not be started, `exited`. Times by the runtime's clock.
    """

    container: str
    attempt: int
    id: str
    state: Literal["created", "running", "exited"]
    spec_hash: str = ""
    image_id: str = ""
    ip: str = ""
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: int = 0
    finished_at: int = 0
    devices: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """What device plugins gave it: ids by resource."""


class Ending(Message, frozen=True, kw_only=True):
    """The end of a pod that was asked for, as TerminationRequested says it; kept beside the log until it is over."""

    reason: EndReason
    grace_period_seconds: int
    deadline: int


@registered
class AdoptPod(Command, frozen=True, kw_only=True):
    """The log is new, and this pod ran before it: go on with it as it was found. Sent by the node itself.

    `ending` says that its end had begun. `host_ip` is the node's own address.
    """

    pod: str
    uid: str
    source: str
    digest: str
    manifest: Pod
    accepted_at: int
    found: tuple[FoundContainer, ...] = ()
    host_ip: str = ""
    ending: Ending | None = None


@registered
class PodAdopted(PodEvent, frozen=True, kw_only=True):
    """The pod's life under `uid` goes on in a log that knows nothing of its beginning; nothing was touched.

    Stands for SpecAccepted and all that came after it. `containers` are the newest attempts that came to run; `before`
    the last dead attempt of what runs now.
    """

    source: str
    digest: str
    manifest: Pod
    accepted_at: int
    sandbox_hash: str
    container_hashes: dict[str, str]
    host_ip: str = ""
    sandbox: FoundContainer | None = None
    containers: tuple[FoundContainer, ...] = ()
    before: tuple[FoundContainer, ...] = ()


@registered
class AdoptionRefused(PodEvent, frozen=True, kw_only=True):
    """A pod of this name lives already: what was found is none of its own."""

    reason: str


@registered
class SuccessorAwaits(PodEvent, frozen=True, kw_only=True):
    """Another pod of the same name is wanted (`successor` its uid): this one ends first. Null: no longer wanted."""

    successor: str | None
    source: str = ""
    digest: str = ""
    manifest: Pod | None = None
    pull_secrets: dict[str, str] = msgspec.field(default_factory=dict)


@registered
class TerminationRequested(PodEvent, frozen=True, kw_only=True):
    """The pod is to end: containers first, then its sandbox, all gone by `deadline` plus what removal takes.

    Asked for again with an earlier deadline, the earlier one holds. `resumed`: it had been asked for in a log that was
    lost, and preStop hooks may have been begun: none is run.
    """

    reason: EndReason
    grace_period_seconds: int
    deadline: int
    resumed: bool = False


@registered
class PodFailed(PodEvent, frozen=True, kw_only=True):
    """The pod is over, whatever its containers are: they are stopped, and the pod stays, with this reason."""

    reason: str
    message: str


class ShareEvent(PodEvent, frozen=True, kw_only=True):
    """About the pod's share of the node."""

    def subject(self) -> str:
        return "cgroup"


@registered
class CgroupRequested(ShareEvent, frozen=True, kw_only=True):
    """Asks `qos` for a share of the node, and for a cgroup that holds the pod to it. Answers: `qos.CgroupReady`,
    `qos.PodRefused`, which name the same uid.

    `running`: containers of it run already, which are not to be refused. It is said again until it is answered.
    """

    needs: PodNeeds
    running: bool = False
    requested_at: int = 0


@registered
class CgroupGranted(ShareEvent, frozen=True, kw_only=True):
    """The pod has its share. Its containers begin beneath `parent`; empty: wherever the runtime puts them."""

    parent: str = ""


@registered
class CgroupReleased(ShareEvent, frozen=True, kw_only=True):
    """The pod is over and nothing of it runs, though it is still there to be looked at: it takes nothing any more."""


@registered
class SandboxBlocked(PodEvent, frozen=True, kw_only=True):
    """The pod may not have a sandbox as it is written: `message` names the field that is not honoured."""

    message: str


@registered
class SandboxStartRequested(SandboxEvent, frozen=True, kw_only=True):
    """Intent: create and start the sandbox. `spec_hash` is its definition's; `requested_at` as for containers."""

    spec_hash: str
    requested_at: int


@registered
class SandboxStarted(SandboxEvent, frozen=True, kw_only=True):
    """The sandbox runs. `ip` is empty where the runtime gives none; `host_ip` is the node's own address.

    `started_at` by the runtime's clock.
    """

    id: str
    ip: str = ""
    host_ip: str = ""
    started_at: int


@registered
class SandboxStartFailed(SandboxEvent, frozen=True, kw_only=True):
    """The sandbox could not be started; tried again at `retry_at`."""

    message: str
    retry_at: int


@registered
class SandboxExited(SandboxEvent, frozen=True, kw_only=True):
    """The sandbox is dead (stopped by us, or killed). There is to be no new one before `next_at`."""

    id: str
    exit_code: int
    finished_at: int
    next_at: int = 0


@registered
class SandboxStopRequested(SandboxEvent, frozen=True, kw_only=True):
    """Intent: stop the sandbox."""

    id: str


@registered
class SandboxStopFailed(SandboxEvent, frozen=True, kw_only=True):
    """The runtime refused to stop the sandbox; tried again at `retry_at`."""

    id: str
    message: str
    retry_at: int


@registered
class ImageEnsureRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: see that the image is there, by the pull policy."""

    image: str
    policy: str


@registered
class ImagePullProgress(ContainerEvent, frozen=True, kw_only=True):
    """So much of the image has come, of the layers that are known so far; at most one in five seconds."""

    image: str
    done_bytes: int
    total_bytes: int


@registered
class ImageReady(ContainerEvent, frozen=True, kw_only=True):
    """The image is there. `pulled` says whether it was fetched for this, and then how long that took, after what wait.

    `digest` is by what name its registry knows it (`host/path@sha256:...`), empty for one that no registry has.
    """

    image: str
    image_id: str
    digest: str = ""
    pulled: bool
    milliseconds: int = 0
    waited_milliseconds: int = 0
    size_bytes: int = 0


@registered
class ImageFailed(ContainerEvent, frozen=True, kw_only=True):
    """The image cannot be had. `reason` is ErrImagePull, RegistryUnavailable, ErrImageNeverPull or InvalidImageName.

    `failures` counts in a row. The wait for `retry_at` begins at `waits_from`.
    """

    image: str
    reason: str
    message: str
    failures: int
    waits_from: int
    retry_at: int


@registered
class ImageBackOffBegan(ContainerEvent, frozen=True, kw_only=True):
    """The container waits for the next try of its image (ImagePullBackOff) until `retry_at`."""

    image: str
    retry_at: int


@registered
class ContainerBlocked(ContainerEvent, frozen=True, kw_only=True):
    """The container may not start as it is written: `reason` CreateContainerConfigError with the field's path.

    Holds until the pod's spec changes.
    """

    reason: str
    message: str


@registered
class ContainerStartRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: create and start the container in the sandbox `sandbox_id`. `spec_hash` is its definition's.

    `post_start` is its hook, to be run when it runs. A death of this attempt that the runtime dates before
    `requested_at` is about an earlier life of the pod.
    """

    sandbox_id: str
    spec_hash: str
    requested_at: int
    post_start: LifecycleHandler | None = None


@registered
class ContainerStarted(ContainerEvent, frozen=True, kw_only=True):
    """The container runs. `started_at` by the runtime's clock."""

    id: str
    started_at: int


@registered
class ContainerStartFailed(ContainerEvent, frozen=True, kw_only=True):
    """The container could not be created or started.

    `reason` is CreateContainerError, RunContainerError, CreateContainerConfigError or, for a volume that could not be
    had, FailedMount. With an `id` the container was made and counts as having exited with `exit_code` at `failed_at`;
    without one the same attempt is made again at `retry_at`.
    """

    id: str = ""
    reason: str
    message: str
    exit_code: int = 128
    failures: int = 0
    failed_at: int
    retry_at: int = 0


@registered
class ContainerExited(ContainerEvent, frozen=True, kw_only=True):
    """The container is dead. `reason` is Completed, Error, OOMKilled or ContainerStatusUnknown; runtime's times."""

    id: str
    exit_code: int
    reason: str
    message: str = ""
    started_at: int
    finished_at: int


@registered
class ExitRead(ContainerEvent, frozen=True, kw_only=True):
    """What could be learnt of a dead container afterwards: `message`, its last word, empty where it left none.

    `oom_killed`: the kernel killed it for its memory, which was not known when its death was.
    """

    id: str
    message: str = ""
    oom_killed: bool = False


@registered
class RestartScheduled(ContainerEvent, frozen=True, kw_only=True):
    """The container, whose `attempt` ended, is started again at `at`. `back_off_seconds` 0 means at once.

    `next_back_off_seconds` is how long the restart after this one would wait, counted from its exit.
    """

    at: int
    back_off_seconds: int
    next_back_off_seconds: int


@registered
class StrayFound(ContainerEvent, frozen=True, kw_only=True):
    """A container runs under the pod's name that is not its current attempt (`uid` may be another one's): it goes."""

    id: str


@registered
class ContainerStopRequested(ContainerEvent, frozen=True, kw_only=True):
    """Intent: stop this attempt: TERM, and KILL at `deadline` (`grace_period_seconds` after the request).

    Held, it gets no signal before ContainerStopReleased: its hook `pre_stop` comes first, or other containers do. The
    grace runs all the time. Asked for once more, only the deadline is another one.
    """

    id: str
    grace_period_seconds: int
    deadline: int
    reason: StopReason
    pre_stop: LifecycleHandler | None = None
    held: bool = False


@registered
class ContainerStopReleased(ContainerEvent, frozen=True, kw_only=True):
    """Intent: a stop that was held goes on: TERM now, KILL at `deadline`, which leaves it two seconds at least."""

    id: str
    deadline: int


class HookEvent(ContainerEvent, frozen=True, kw_only=True):
    """About a lifecycle hook of the container `id`."""

    id: str
    hook: HookName


@registered
class HookRequested(HookEvent, frozen=True, kw_only=True):
    """Intent: run a hook. An exec is made first and begun only when HookPrepared names it; a sleep needs no effect.

    `handler` is what was asked for then, whatever the spec says later. At `deadline` it is given up; 0: never.
    """

    handler: LifecycleHandler
    requested_at: int
    deadline: int = 0


@registered
class HookPrepared(HookEvent, frozen=True, kw_only=True):
    """Intent: the exec `exec_id` was made in the container and is begun now, once."""

    exec_id: str


@registered
class HookEnded(HookEvent, frozen=True, kw_only=True):
    """The hook is over. `message` says why it failed, output included."""

    outcome: HookOutcome
    message: str = ""


@registered
class ContainerStopFailed(ContainerEvent, frozen=True, kw_only=True):
    """The runtime refused to stop the container; tried again at `retry_at`."""

    id: str
    message: str
    retry_at: int


@registered
class ProbingRequested(ContainerEvent, frozen=True, kw_only=True):
    """The container runs, its postStart hook is over: it is to be probed in this way.

    `started_at` by the runtime's clock; `ip` is the pod's address, empty where it has none. `restarts` is the policy
    that holds for the container; `started`: it counts as started (it has no startup probe, or that has succeeded).
    `definition` has numbers for ports and a command without references; it is from the spec of `digest`. `field` is the
    container's own path in the spec, as KubeEvents name it.
    """

    id: str
    digest: str
    started_at: int
    ip: str
    restarts: RestartPolicy
    started: bool
    field: str
    probe: ProbeName
    definition: Probe
    period_milliseconds: int


@registered
class ProbingWithdrawn(ContainerEvent, frozen=True, kw_only=True):
    """The container, which was probed before, has no such probe any more, or is no more."""

    probe: ProbeName


@registered
class ProbingSkipped(ContainerEvent, frozen=True, kw_only=True):
    """Nobody in this node probes: the probe of the container `id` counts as if it had succeeded.

    `digest` and `started_at` as in ProbingRequested.
    """

    id: str
    digest: str
    started_at: int
    probe: ProbeName


@registered
class ContainerProbed(ContainerEvent, frozen=True, kw_only=True):
    """What counts for the container `id` is another result of this probe now."""

    id: str
    probe: ProbeName
    result: ProbeResult


@registered
class CleanupRequested(PodEvent, frozen=True, kw_only=True):
    """Intent: everything is dead; remove containers, sandboxes and volumes of this uid."""


@registered
class CleanupFailed(PodEvent, frozen=True, kw_only=True):
    """Something of the pod could not be removed; tried again at `retry_at`."""

    message: str
    retry_at: int


@registered
class PodEnded(PodEvent, frozen=True, kw_only=True):
    """Nothing of this uid is left. The entity is gone, or begins again with its successor."""


class DevicesEvent(PodEvent, frozen=True, kw_only=True):
    """About the devices that one container wants of the node's device plugins."""

    container: str

    def subject(self) -> str:
        return f"devices/{self.container}"


@registered
class AdmissionBegan(PodEvent, frozen=True, kw_only=True):
    """Before its sandbox the pod asks these kinds for what it needs of them: the ones that take part in this node.

    Said once more where others take part than did.
    """

    kinds: tuple[str, ...]


@registered
class DevicesRequested(DevicesEvent, frozen=True, kw_only=True):
    """The container wants so many devices of each resource. The id of the request is `<uid>/<container>`.

    It is said again, in the same words, until it is answered by one of `devices`; and before each `sandbox` (its
    attempt), for a plugin may have gone since. `held` names devices, by resource, that the container had when a new log
    began, and runs with.
    """

    role: Literal["init", "sidecar", "app"]
    resources: dict[str, int]
    requested_at: int
    sandbox: int = 0
    held: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


@registered
class DevicesAwaited(DevicesEvent, frozen=True, kw_only=True):
    """Not yet: what the container wants cannot be had now, and it waits. `message` says for what."""

    reason: str
    message: str
    said_at: int


@registered
class DevicesGranted(DevicesEvent, frozen=True, kw_only=True):
    """The container has its devices: ids by resource; `answer` is what all plugins want it to be started with.

    `pre_start`: a plugin wants to be told before each of its starts.
    """

    devices: dict[str, tuple[str, ...]]
    answer: Answer = Answer()
    pre_start: bool = False


@registered
class DevicesReleased(PodEvent, frozen=True, kw_only=True):
    """These containers need their devices no more, or are to ask for others."""

    containers: tuple[str, ...]

    def subject(self) -> str:
        return "devices"


@registered
class PreStartRequested(DevicesEvent, frozen=True, kw_only=True):
    """The container's `attempt` is about to be started: its plugins are to be told, and may object.

    `failures`: how often its start has failed before.
    """

    attempt: int
    failures: int = 0
    requested_at: int


@registered
class PreStartAllowed(DevicesEvent, frozen=True, kw_only=True):
    """The plugins have been told of this attempt, after so many failures of its start."""

    attempt: int
    failures: int = 0
