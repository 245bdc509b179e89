"""The effects of a pod, each with all the plain data that its worker needs.

Input: none. Output: the Effect Structs that `outstanding` returns. Next: `effects`, whose workers run them and send
`signals`: progress reports, and one result. Workers are idempotent: one that is restarted finds its own earlier work by
deterministic names and labels, and reports it as if it had just done it.

Subjects (only one effect per subject runs at a time): `sandbox`, `container/<name>`, `create/<name>` for a creation
ahead of the start, `hook/<name>`, `exit/<id>` for the termination message of a dead container, `stray/<id>` for a
container that is not a current attempt, `spec` for the spec's copy in the state folder, `pod` for the clean-up.
"""

from __future__ import annotations

import msgspec

from chronolet.kernel.decider import Effect
from chronolet_schemas.devices import Answer
from chronolet_schemas.envelope import Message
from chronolet_schemas.pod import Ending, HookName
from chronolet_schemas.podspec import HTTPGetAction, Pod


class Origin(Message, frozen=True, kw_only=True):
    """Where a pod comes from: the source that requested it, its digest, and when it was accepted. Stored with the
    pod's manifest in the state folder.
    """

    source: str = ""
    digest: str = ""
    accepted_at: int = 0


CREATION = "create/"
"""Prefix of the subject of a creation ahead of a start."""
NOT_BEGUN = "the end of its pod was requested before it was started"
"""The message of a start that was cancelled before it began."""
OUTDATED = "it is no longer needed in the sandbox for which it was created"
"""The message for a container that was created ahead of its start and is no longer needed."""


class PodEffect(Effect, frozen=True, kw_only=True):
    """Base class of the effects of one pod; `pod` is namespace/name. `ending` is set while this uid is being
    terminated: the worker records that in the state folder before it touches anything.
    """

    pod: str
    uid: str
    ending: Ending | None = None


class StartSandbox(PodEffect, frozen=True, kw_only=True):
    """Store the pod's manifest, create and start the sandbox. Sends SandboxMade once it is created. Results: SandboxUp,
    SandboxDown (found dead), SandboxRefused.

    Before it sends SandboxRefused, the worker tries to remove a sandbox that could not be started, because the retry
    uses the same name.
    """

    attempt: int
    spec_hash: str = ""
    manifest: Pod
    origin: Origin = Origin()
    cgroup_parent: str = ""
    begun_at: int = 0
    """When the pod was accepted: the oldest pod is served first."""


class KeepSpec(PodEffect, frozen=True, kw_only=True):
    """Store the manifest, which has changed while the pod had a sandbox. Result: SpecKept."""

    manifest: Pod
    origin: Origin


class StopSandbox(PodEffect, frozen=True, kw_only=True):
    """Stop the sandbox. Results: SandboxDown (also if it does not exist), StopRefused."""

    attempt: int
    id: str
    grace_period_seconds: int = 10


class PullSecret(Message, frozen=True, kw_only=True):
    """A Secret to send to a registry, identified by its digest; its content is in the state folder."""

    name: str
    digest: str


class EnsureImage(PodEffect, frozen=True, kw_only=True):
    """Ensure that the image is present. `policy` is Always, IfNotPresent or Never.

    Sends PullBegan when a pull begins, then PullProgress. Results: ImagePresent, ImageRefused.
    """

    container: str
    attempt: int
    image: str
    policy: str
    secrets: tuple[PullSecret, ...] = ()


class ContainerEffect(PodEffect, frozen=True, kw_only=True):
    """Everything needed to create one container of `manifest` in the sandbox.

    `device_ids`: the container's devices by resource. `devices`: their plugins' options for its start.
    """

    container: str
    attempt: int
    sandbox_id: str
    sandbox_ip: str
    spec_hash: str
    image_id: str
    manifest: Pod
    origin: Origin = Origin()
    cgroup_parent: str = ""
    devices: Answer = Answer()
    device_ids: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    begun_at: int = 0
    """When the pod was accepted, as in StartSandbox."""


class CreateContainer(ContainerEffect, frozen=True, kw_only=True):
    """Create the container without starting it, while its sandbox starts or its previous attempt is being stopped.
    Results: ContainerMade, ContainerRefused (the start then retries and reports its own error).

    The worker creates the pod's volumes first. It writes no file that contains the pod's address, which may not be
    known yet. If `image` is set, the worker resolves it first; the result must be the image `image_id`.
    """

    image: str = ""


class StartContainer(ContainerEffect, frozen=True, kw_only=True):
    """Create and start the container. Results: ContainerUp, ContainerDead (it ran and has died since),
    ContainerRefused.

    The worker first stores the manifest, which may have changed, and creates the pod's volumes (they belong to `uid`).
    It starts only a container that it has just created or that an inspect shows as `created`. `made_id` is the
    container created ahead of the start; it is replaced by a new one if its definition no longer fits.
    """

    made_id: str = ""


class FindSandbox(PodEffect, frozen=True, kw_only=True):
    """For an ending or failed pod: find the sandbox that a start of this attempt left behind. A sandbox that never ran
    is removed. Results: SandboxUp, SandboxDown, SandboxRefused (nothing ran).
    """

    attempt: int


class FindContainer(PodEffect, frozen=True, kw_only=True):
    """Find a container as FindSandbox finds a sandbox. Results: ContainerUp, ContainerDead, ContainerRefused (nothing
    ran).
    """

    container: str
    attempt: int


class DiscardContainer(PodEffect, frozen=True, kw_only=True):
    """Remove an outdated container that was created ahead and never started: its sandbox is no longer the current one,
    its definition was removed, or its pod has failed. Result: ContainerRefused (there is nothing to start).
    """

    container: str
    attempt: int


class StopContainer(PodEffect, frozen=True, kw_only=True):
    """Send the container's stop signal, and KILL at `deadline` (milliseconds; a retry after a restart gets the
    remainder of the grace period).

    `with_pod`: the sandbox is stopped next, so the worker sends ProcessEnded as soon as the kernel shows that the
    process has ended, where that is visible. Results: ContainerDead (exit code and times from an inspect; reason
    ContainerStatusUnknown if the container is gone), StopRefused.
    """

    container: str
    attempt: int
    id: str
    grace_period_seconds: int
    deadline: int
    with_pod: bool = False


class PrepareHook(PodEffect, frozen=True, kw_only=True):
    """Create the exec of a hook in the container `id` without starting it. Results: HookPrepared, HookRefused."""

    container: str
    attempt: int
    id: str
    hook: HookName
    command: tuple[str, ...]


class RunHook(PodEffect, frozen=True, kw_only=True):
    """Run a hook to its end: the exec `exec_id`, or the request `http` to `port` at `http.host`, else `sandbox_ip`.

    The worker inspects an exec first: it reports one that has ended, waits for one that is running, starts one that
    never started, and never restarts one that the runtime does not know. A request may be repeated after an agent
    restart. `deadline` (milliseconds, 0: none) may move while the hook runs: the decider ends the hook once this time
    has passed. Results: HookDone, HookUnfinished, HookOutcomeUnknown.
    """

    container: str
    attempt: int
    id: str
    hook: HookName
    exec_id: str = ""
    command: tuple[str, ...] = ()
    http: HTTPGetAction | None = None
    port: int = 0
    sandbox_ip: str = ""
    deadline: int = 0


class ReadExit(PodEffect, frozen=True, kw_only=True):
    """Read the termination message of a dead container. Result: ExitRead.

    `path` and `policy` are its definition's terminationMessagePath and terminationMessagePolicy.
    """

    container: str
    attempt: int
    id: str
    path: str
    policy: str
    exit_code: int


class Cleanup(PodEffect, frozen=True, kw_only=True):
    """Remove the links to the pod's logs, every container and sandbox with this uid, running or not, and the volumes.
    Results: CleanedUp, CleanupRefused.
    """


Wanted = (
    StartSandbox
    | FindSandbox
    | KeepSpec
    | StopSandbox
    | EnsureImage
    | CreateContainer
    | StartContainer
    | FindContainer
    | DiscardContainer
    | StopContainer
    | PrepareHook
    | RunHook
    | ReadExit
    | Cleanup
)
"""Every effect of a pod."""
