"""What a pod wants to have running in the outside world, with all the plain data that a worker needs.

Comes in: nothing. Goes out: the Effect Structs that `decider.outstanding` returns. Next: `effects`, whose workers run
them and answer with one of `signals`. A worker that is started again finds its own earlier work by deterministic names
and labels, and answers as if it had just done it.

Subjects (one effect of a subject runs at a time): `sandbox`, `container/<name>`, `create/<name>` for one created
ahead of its start, `hook/<name>`, `exit/<id>` for the last word of a dead container, `stray/<id>` for one that
is not its pod's current attempt, `spec` for what is kept of it, `pod` for the clean-up.
"""

from __future__ import annotations

import msgspec

from chronolet.kernel.decider import Effect
from chronolet_schemas.devices import Answer
from chronolet_schemas.envelope import Message
from chronolet_schemas.pod import Ending, HookName
from chronolet_schemas.podspec import HTTPGetAction, Pod


class Origin(Message, frozen=True, kw_only=True):
    """What is kept with a pod's manifest beside the log: whose wish it is, and since when."""

    source: str = ""
    digest: str = ""
    accepted_at: int = 0


CREATION = "create/"
"""How the subject of a creation ahead of a start begins."""
NOT_BEGUN = "the end of its pod was requested before it was started"
"""What is said of a start that does not happen any more."""
OUTDATED = "it is not to run in the sandbox that it was created for any more"
"""What is said of a creation that is of no use any more."""


class PodEffect(Effect, frozen=True, kw_only=True):
    """Of one pod: `pod` is namespace/name. `ending` says that the life of this uid is being ended: the worker writes
    that down beside the log before it touches anything.
    """

    pod: str
    uid: str
    ending: Ending | None = None


class StartSandbox(PodEffect, frozen=True, kw_only=True):
    """Keep the pod's manifest, create and start the sandbox. Sends SandboxMade when it is created. Answers: SandboxUp,
    SandboxDown (found dead), SandboxRefused.

    A sandbox of this attempt that could not be started is to be removed by the worker before it answers SandboxRefused,
    for the next try uses the same name.
    """

    attempt: int
    spec_hash: str = ""
    manifest: Pod
    origin: Origin = Origin()
    cgroup_parent: str = ""
    begun_at: int = 0
    """When the pod was accepted: the oldest pod gets its turn first."""


class KeepSpec(PodEffect, frozen=True, kw_only=True):
    """Keep the manifest, which has changed while something of it runs. Answers: SpecKept."""

    manifest: Pod
    origin: Origin


class StopSandbox(PodEffect, frozen=True, kw_only=True):
    """Stop the sandbox. Answers: SandboxDown (also if it is not there), StopRefused."""

    attempt: int
    id: str
    grace_period_seconds: int = 10


class PullSecret(Message, frozen=True, kw_only=True):
    """A Secret that a registry may be told, by its digest: what it holds lies in the state folder."""

    name: str
    digest: str


class EnsureImage(PodEffect, frozen=True, kw_only=True):
    """See that the image is there. `policy` is Always, IfNotPresent or Never.

    Sends PullBegan when it begins to fetch, then PullProgress. Answers: ImagePresent, ImageRefused.
    """

    container: str
    attempt: int
    image: str
    policy: str
    secrets: tuple[PullSecret, ...] = ()


class ContainerEffect(PodEffect, frozen=True, kw_only=True):
    """About one container of `manifest`: all that is needed to create it in the sandbox.

    `device_ids` are the container's devices by resource, `devices` what their plugins want it to be started with.
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
    """As with StartSandbox."""


class CreateContainer(ContainerEffect, frozen=True, kw_only=True):
    """Create the container while its sandbox is being started, or while the previous attempt is being stopped, and do
    not start it. Answers: ContainerMade, ContainerRefused (the start tries again, and reports what it meets).

    The worker makes the pod's volumes first. It writes no file that names the pod's address, which may not be known.
    `image`, if given, is looked for first, and has to be the image `image_id`.
    """

    image: str = ""


class StartContainer(ContainerEffect, frozen=True, kw_only=True):
    """Create and start the container. Answers: ContainerUp, ContainerDead (it ran and is dead by now),
    ContainerRefused.

    The worker keeps the manifest, which may have changed, and makes the pod's volumes first (they belong to `uid`). It
    starts only what it has just created, or what an inspect calls `created`. `made_id` is what was created ahead of
    the start; what is to be made otherwise by now gives way to a new container.
    """

    made_id: str = ""


class FindSandbox(PodEffect, frozen=True, kw_only=True):
    """Of a pod that is over: find what a start of this attempt has left; what never ran is removed. Answers: SandboxUp,
    SandboxDown, SandboxRefused (nothing came to run).
    """

    attempt: int


class FindContainer(PodEffect, frozen=True, kw_only=True):
    """Likewise. Answers: ContainerUp, ContainerDead, ContainerRefused (nothing came to run)."""

    container: str
    attempt: int


class DiscardContainer(PodEffect, frozen=True, kw_only=True):
    """Remove what was created ahead and is not to run any more, if it was never started: its sandbox is no longer the
    one at hand, its definition was taken out, its pod has failed. Answers: ContainerRefused (nothing is to be started).
    """

    container: str
    attempt: int


class StopContainer(PodEffect, frozen=True, kw_only=True):
    """TERM, and KILL at `deadline` (milliseconds; a repeat after a restart gets what is left of the grace).

    `with_pod`: the sandbox goes next. Then it sends ProcessEnded as soon as the kernel has that, where it can be seen.
    Answers: ContainerDead (with exit code and times by an inspect; reason ContainerStatusUnknown if it is not there),
    StopRefused.
    """

    container: str
    attempt: int
    id: str
    grace_period_seconds: int
    deadline: int
    with_pod: bool = False


class PrepareHook(PodEffect, frozen=True, kw_only=True):
    """Make the exec of a hook in the container `id`, without beginning it. Answers: HookPrepared, HookRefused."""

    container: str
    attempt: int
    id: str
    hook: HookName
    command: tuple[str, ...]


class RunHook(PodEffect, frozen=True, kw_only=True):
    """Run a hook to its end: the exec `exec_id`, or the request `http` to `port` at `http.host`, else `sandbox_ip`.

    An exec is looked at first: one that ended answers, one that runs is waited for, one that was never begun is begun,
    one that the runtime does not know is never begun again. A request may be made again after a restart of the agent.
    `deadline` (milliseconds, 0: none) may move while it runs: the decider gives the hook up then by itself.
    Answers: HookDone, HookUnfinished, HookOutcomeUnknown.
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
    """Read what a dead container left as its termination message. Answers: ExitRead.

    `path` and `policy` are its definition's terminationMessagePath and terminationMessagePolicy.
    """

    container: str
    attempt: int
    id: str
    path: str
    policy: str
    exit_code: int


class Cleanup(PodEffect, frozen=True, kw_only=True):
    """Remove every container and sandbox with this uid, running or not, then the volumes. Answers: CleanedUp,
    CleanupRefused.
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
