"""The actions that a pod needs, computed from its sandboxes and containers. Pure.

Input: `PodView`, a pod reduced to the relevant facts. Output: `Actions`. Next: `plan`, which takes the steps. Source:
pkg/kubelet/kuberuntime/kuberuntime_manager.go (computePodActions), kuberuntime_container.go
(computeInitContainerActions), util/util.go (PodSandboxChanged).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from chronolet.pod.planning.restart import ObservedState, restart_decision
from chronolet_schemas.podspec import RestartPolicy

ProbeResult = Literal["success", "failure", "unknown"]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of `PodView`, the input of `pod_actions`, and of its parts."""


class SandboxView(View, frozen=True, kw_only=True):
    """One of the pod's sandboxes in the runtime."""

    ready: bool
    attempt: int
    ip: str


class ContainerView(View, frozen=True, kw_only=True):
    """The newest container with a given name. A probe result is None until it arrives.

    A container that is not `active` ran in an earlier sandbox. Initialisation, which starts over in a new sandbox,
    treats it as never seen.
    """

    seen: ObservedState
    exit_code: int = 0
    active: bool = True
    definition_changed: bool = False
    startup: ProbeResult | None = None
    liveness: ProbeResult | None = None


class InitView(View, frozen=True, kw_only=True):
    """An init container of the spec; `restartable` marks a sidecar."""

    name: str
    restartable: bool = False
    startup_probe: bool = False


class PodView(View, frozen=True, kw_only=True):
    """A pod: the names in its spec in order, its sandboxes newest first, and its containers by name (missing if never
    seen).
    """

    policy: RestartPolicy
    apps: Sequence[str]
    init: Sequence[InitView] = ()
    ephemeral: Sequence[str] = ()
    host_network: bool = False
    sandboxes: Sequence[SandboxView] = ()
    containers: Mapping[str, ContainerView] = {}

    @property
    def initialised_before(self) -> bool:
        """Whether initialisation completed in some sandbox, which is proved by an app container that ran."""
        return any(self._ran(name) for name in self.apps)

    @property
    def initialised(self) -> bool:
        """Whether an app container has run in the current sandbox, which proves that initialisation completed there."""
        return any(self._ran(name) and self.containers[name].active for name in self.apps)

    def _ran(self, name: str) -> bool:
        return name in self.containers and self.containers[name].seen not in ("never_seen", "created")


class Actions(msgspec.Struct, frozen=True, kw_only=True):
    """The required actions. With `kill_pod`, every running container is stopped first, and then the sandbox.

    `sandbox_attempt` is the number of the sandbox to create. Names are in the spec's order.
    """

    kill_pod: bool = False
    create_sandbox: bool = False
    sandbox_attempt: int = 0
    init_to_start: Sequence[str] = ()
    app_to_start: Sequence[str] = ()
    to_kill: Sequence[str] = ()
    ephemeral_to_start: Sequence[str] = ()


def pod_actions(pod: PodView) -> Actions:
    """Return the actions that the kubelet would take in one sync of this pod."""
    if not _sandbox_good(pod):
        return _new_sandbox(pod)
    ephemeral = tuple(name for name in pod.ephemeral if name not in pod.containers)
    init = _init_actions(pod)
    if init.kill_pod or not init.done:
        return Actions(
            kill_pod=init.kill_pod, init_to_start=init.start, to_kill=init.kill, ephemeral_to_start=ephemeral
        )
    return _app_actions(pod, init, ephemeral)


def _sandbox_good(pod: PodView) -> bool:
    """Whether the newest sandbox is the only ready one and has an address; on the host network it needs none."""
    if sum(one.ready for one in pod.sandboxes) != 1:
        return False
    newest = pod.sandboxes[0]
    return newest.ready and (pod.host_network or newest.ip != "")


def _new_sandbox(pod: PodView) -> Actions:
    attempt = pod.sandboxes[0].attempt + 1 if pod.sandboxes else 0
    kill_only = Actions(kill_pod=True)
    if pod.policy == "Never" and attempt != 0 and pod.containers:
        return kill_only
    apps = tuple(name for name in pod.apps if not (pod.policy == "OnFailure" and _succeeded(pod.containers.get(name))))
    if not apps and pod.initialised_before:
        return kill_only
    again = Actions(kill_pod=True, create_sandbox=True, sandbox_attempt=attempt)
    if pod.init:
        return msgspec.structs.replace(again, init_to_start=(pod.init[0].name,))
    return msgspec.structs.replace(again, app_to_start=apps)


def _succeeded(container: ContainerView | None) -> bool:
    return container is not None and container.seen == "exited" and container.exit_code == 0


class _Init(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of initialisation: app containers start once it is `done`."""

    done: bool
    start: tuple[str, ...] = ()
    kill: tuple[str, ...] = ()
    kill_pod: bool = False


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """The actions for one init container."""

    done: bool = False
    start_next: bool = False
    start: bool = False
    kill: bool = False
    kill_pod: bool = False


def _init_actions(pod: PodView) -> _Init:
    """Check the init containers from last to first: the last one that was seen determines the progress."""
    if not pod.init:
        return _Init(done=True)
    reached = pod.initialised
    done, start, kill = reached, list[str](), list[str]()
    for index in range(len(pod.init) - 1, -1, -1):
        spec = pod.init[index]
        step = _init_step(pod, index, reached=reached)
        if step is None:
            continue
        if step.kill_pod:
            return _Init(done=False, kill_pod=True)
        done = done or step.done
        if step.start_next:
            start.append(pod.init[index + 1].name)
        if step.start:
            start.append(spec.name)
        if step.kill:
            kill.append(spec.name)
        reached = True
    if not reached:
        start.append(pod.init[0].name)
    return _Init(done=done, start=tuple(reversed(start)), kill=tuple(reversed(kill)))


def _init_step(pod: PodView, index: int, *, reached: bool) -> _Step | None:
    """Return the actions for one init container; None if it needs none: it was never seen, or a later container was. A
    sidecar needs actions even after a later container was seen.

    `reached`: whether a later init container, or an app container, was seen.
    """
    spec, last = pod.init[index], index == len(pod.init) - 1
    container = pod.containers.get(spec.name)
    if container is None or not container.active:
        # A sidecar must run even if its last status is no longer known.
        return _Step(start=True) if reached and spec.restartable else None
    if reached and not spec.restartable:
        return None
    return _seen_init_step(pod, spec, container, last=last, reached=reached)


def _seen_init_step(pod: PodView, spec: InitView, container: ContainerView, *, last: bool, reached: bool) -> _Step:
    match container.seen:
        case "created" | "never_seen":
            return _Step(start=True)
        case "running":
            return _running_sidecar(spec, container, last=last, reached=reached) if spec.restartable else _Step()
        case "exited":
            return _exited_init(pod, spec, container, last=last)
        case _:
            if not spec.restartable and pod.policy == "Never":
                return _Step(kill_pod=True)
            return _Step(start=True, kill=True)


def _running_sidecar(spec: InitView, container: ContainerView, *, last: bool, reached: bool) -> _Step:
    again = _Step(start=True, kill=True)
    if spec.startup_probe and container.startup != "success":
        return again if container.startup == "failure" else _Step()
    replaced = container.liveness == "failure" or container.definition_changed
    return _Step(done=last, start_next=not last and not reached, start=replaced, kill=replaced)


def _exited_init(pod: PodView, spec: InitView, container: ContainerView, *, last: bool) -> _Step:
    if spec.restartable:
        return _Step(start=True)
    if container.exit_code != 0:
        return _Step(kill_pod=True) if pod.policy == "Never" else _Step(start=True)
    return _Step(done=last, start_next=not last)


def _app_actions(pod: PodView, init: _Init, ephemeral: tuple[str, ...]) -> Actions:
    start, kill, kept = list[str](), list[str](), 0
    for name in pod.apps:
        container = pod.containers.get(name, ContainerView(seen="never_seen"))
        if container.seen != "running":
            if restart_decision(pod.policy, container.seen, container.exit_code):
                start.append(name)
                if container.seen == "unknown":
                    kill.append(name)
            continue
        if not (container.definition_changed or "failure" in (container.liveness, container.startup)):
            kept += 1
            continue
        kill.append(name)
        if container.definition_changed or pod.policy != "Never":
            start.append(name)
    finished = kept == 0 and not start
    return Actions(
        kill_pod=finished,
        init_to_start=() if finished else init.start,
        app_to_start=tuple(start),
        to_kill=(*init.kill, *kill),
        ephemeral_to_start=ephemeral,
    )
