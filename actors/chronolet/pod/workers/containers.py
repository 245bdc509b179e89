"""The worker that creates, starts and stops a pod's containers.

Input: `wanted.CreateContainer` (ahead of the start), `StartContainer`, `StopContainer`. Output: calls to the runtime
and to volumes; `signals`. Next: `decider`. Source: pkg/kubelet/kuberuntime/kuberuntime_container.go.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Literal

from msgspec.structs import replace

from chronolet.kernel.kind import EffectContext
from chronolet.pod import signals, wanted
from chronolet.pod.specs import mounting, rights, specs
from chronolet.pod.specs.devices import device_additions
from chronolet.pod.specs.rights import ConfigRefusal
from chronolet.pod.state import STATUS_UNKNOWN
from chronolet.pod.workers.dependencies import PodDependencies
from chronolet.pod.workers.known_containers import MainProcess
from chronolet.pod.workers.starts.creation import (
    HalfRestored,
    find_or_create,
    just_created,
    start_if_needed,
    start_once,
)
from chronolet.pod.workers.starts.runtime_restart import retry_after_restart
from chronolet.pod.workers.stops.stopping import stop_container
from chronolet.ports.pods.specs import SpecRefusal
from chronolet.ports.pods.volumes import VolumeRefusal
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import ContainerSpec, ContainerState, Refusal
from chronolet.rules.downward import UnknownReferenceError
from chronolet.rules.validation.expanded_sizes import TooLargeError
from chronolet_schemas.envelope import Signal
from chronolet_schemas.podspec import Container, EphemeralContainer

StartReason = Literal["CreateContainerError", "RunContainerError", "CreateContainerConfigError", "FailedMount"]

UNKNOWN_EXIT = 137
"""The kubelet's exit code for a container whose exit was not observed."""
NOT_STARTED_EXIT = 128
"""The kubelet's exit code for a container that was created but could not be started."""


class ContainerWorker:
    """The worker of CreateContainer, StartContainer and StopContainer: one method per effect; stateless."""

    def __init__(self, deps: PodDependencies) -> None:
        self._deps = deps

    def create(self, effect: wanted.CreateContainer, context: EffectContext) -> Signal:
        """Create a container ahead of its start, without retries: after a failure, the start tries again and reports
        the error.
        """
        runtime = self._deps.fenced(context)
        if effect.image and (problem := _another_image(runtime, effect)):
            return _container_refused(effect, "CreateContainerError", problem)
        spec = self._spec(runtime, effect, context)
        if not isinstance(spec, ContainerSpec):
            return spec
        try:
            created = find_or_create(runtime, spec, lambda: runtime.create_container(spec))
        except Refusal as refusal:
            return _container_refused(effect, "CreateContainerError", str(refusal))
        if created.state != "created":
            return _container_refused(effect, "CreateContainerError", f"container {created.id} is {created.state}")
        self._deps.created.note(created.id, spec.labels[labels.DIGEST])
        return signals.ContainerMade(subject=effect.subject, intent=effect.intent, id=created.id)

    def start(self, effect: wanted.StartContainer, context: EffectContext) -> Signal:
        runtime = self._deps.fenced(context)
        try:
            self._deps.keep(effect, context)
        except SpecRefusal as refusal:
            return _container_refused(effect, "CreateContainerConfigError", str(refusal))
        spec = self._spec(runtime, effect, context)
        if not isinstance(spec, ContainerSpec):
            return spec

        def create() -> ContainerState:
            return self._created_ahead(runtime, effect, spec) or find_or_create(
                runtime, spec, lambda: runtime.create_container(spec)
            )

        try:
            patience = self._deps.timing.restart_patience_seconds
            found = retry_after_restart(runtime, context, create, create, patience)
        except Refusal as refusal:
            return _container_refused(effect, "CreateContainerError", str(refusal))
        return self._run(runtime, context, effect, spec, found)

    def _spec(
        self, runtime: FencedRuntime, effect: wanted.ContainerEffect, context: EffectContext
    ) -> ContainerSpec | Signal:
        """Return the spec for the runtime, or the signal that explains why there is none."""
        definition = specs.definition(effect.manifest, effect.container)
        if definition is None:
            problem = f"{effect.pod}: the manifest has no container {effect.container!r}"
            return _container_refused(effect, "CreateContainerConfigError", problem)
        try:
            return specs.container(effect, definition, self._spec_inputs(runtime, effect, definition, context))
        except (ConfigRefusal, UnknownReferenceError, TooLargeError) as refusal:
            return _container_refused(effect, "CreateContainerConfigError", str(refusal))
        except VolumeRefusal as refusal:
            return _container_refused(effect, "FailedMount", str(refusal))
        except Refusal as refusal:
            return _container_refused(effect, "CreateContainerError", str(refusal))

    def _spec_inputs(
        self, runtime: FencedRuntime, effect: wanted.ContainerEffect, definition: Container, context: EffectContext
    ) -> specs.SpecInputs:
        """Return the inputs of the spec that are not in the manifest.

        Raises ConfigRefusal, UnknownReferenceError, TooLargeError, VolumeRefusal, Refusal.
        """
        deps = self._deps

        def image_user() -> str:
            found = runtime.image(effect.image_id or definition.image)
            return found.user if found is not None else ""

        granted = rights.granted_rights(effect.manifest, definition, deps.host, image_user)
        place = deps.place(effect)
        context.fence("volumes.prepare")
        env = specs.environment(effect.manifest, definition, place)
        mounts = mounting.mounts(deps, effect, definition, place, env)
        context.done("volumes.prepare")
        return specs.SpecInputs(
            node=deps.node,
            cause=context.cause,
            run=deps.run(),
            place=place,
            mounts=mounts,
            granted=granted,
            additions=device_additions(effect, lambda: runtime.engine().knows_cdi, deps.cdi),
            holding=deps.holding,
            target_id=_target(runtime, deps.node, effect, definition),
        )

    def _run(
        self,
        runtime: FencedRuntime,
        context: EffectContext,
        effect: wanted.StartContainer,
        spec: ContainerSpec,
        created: ContainerState,
    ) -> Signal:
        # Before the start, because the exit of a short-lived container may be reported before this worker continues.
        self._deps.link_log(effect, created.id, context)

        def started(container_id: str) -> None:
            self._deps.hold(container_id, spec.held)

        try:
            found = retry_after_restart(
                runtime,
                context,
                lambda: start_once(runtime, created, started),
                lambda: start_if_needed(runtime, created.id, started),
                self._deps.timing.restart_patience_seconds,
            )
        except Refusal as refusal:
            if self._is_removed(refusal, effect, created.id, context):
                return self.start(replace(effect, made_id=""), context)
            if _lost_its_sandbox(runtime, effect):
                # Nothing of this attempt has run: the same attempt is created again in the next sandbox.
                _discard(runtime, created.id)
                return _container_refused(effect, "CreateContainerError", str(refusal))
            problem = f'failed to start container "{effect.container}": {refusal}'
            problem += rights.lacking(self._deps.host) if spec.privileged else ""
            if refusal.kind in ("unavailable", "timeout"):
                # It may or may not be running. A refusal without an id makes the pod retry this attempt, and the retry
                # finds out.
                return _container_refused(effect, "RunContainerError", problem)
            code = _code_of_failed_start(runtime, created.id)
            return _container_refused(effect, "RunContainerError", problem, container_id=created.id, exit_code=code)
        if found.state == "exited":
            return container_dead(effect, found.id, found)
        self._deps.main_processes.note(found.id, MainProcess.of(found))
        return signals.ContainerUp(
            subject=effect.subject, intent=effect.intent, id=found.id, started_at=found.started_at
        )

    def _is_removed(
        self, refusal: Refusal, effect: wanted.StartContainer, container_id: str, context: EffectContext
    ) -> bool:
        """Whether the container no longer exists, so that it can be created again: it was created ahead and has been
        removed, or it was half restored, and is discarded here.
        """
        if isinstance(refusal, HalfRestored):
            refusal.discard(self._deps.fenced(context), context, self._deps.processes)
            return True
        return refusal.kind == "not_found" and container_id == effect.made_id

    def _created_ahead(
        self, runtime: FencedRuntime, effect: wanted.StartContainer, spec: ContainerSpec
    ) -> ContainerState | None:
        """Return the container that was created ahead of this start, if it still exists and still matches the spec."""
        if not effect.made_id:
            return None
        digest = spec.labels[labels.DIGEST]
        if self._deps.created.take(effect.made_id) == digest:
            return just_created(spec, effect.made_id)
        found = runtime.inspect(effect.made_id)
        if found is None or found.state not in ("created", "running", "exited"):
            return None
        return found if found.labels.get(labels.DIGEST) == digest else None

    def stop(self, effect: wanted.StopContainer, context: EffectContext) -> Signal:
        runtime = self._deps.fenced(context)

        def process_ended() -> None:
            context.send(signals.ProcessEnded(subject=effect.subject, intent=effect.intent, id=effect.id))

        def watched(running: MainProcess) -> AbstractContextManager[None]:
            return self._deps.processes.watched(running.pid, effect.id, process_ended)

        try:
            dead = stop_container(
                runtime,
                context,
                effect.id,
                known=self._deps.main_processes.take(effect.id),
                deadline=effect.deadline,
                longest_seconds=effect.grace_period_seconds,
                timing=self._deps.timing,
                watched=watched if effect.with_pod else lambda _: nullcontext(),
            )
        except Refusal as refusal:
            return signals.StopRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return container_dead(effect, effect.id, dead)


def _another_image(runtime: FencedRuntime, effect: wanted.CreateContainer) -> str:
    """Return why the image's name no longer refers to the requested image; empty if it still does."""
    try:
        found = runtime.image(effect.image)
    except Refusal as refusal:
        return str(refusal)
    if found is None:
        return f"image {effect.image} no longer exists"
    return "" if found.id == effect.image_id else f"image {effect.image} is now {found.id}, expected {effect.image_id}"


def _target(runtime: FencedRuntime, node: str, effect: wanted.ContainerEffect, definition: Container) -> str:
    """Return the id of an ephemeral container's target; empty if it has none. Raises ConfigRefusal if it is not
    running.
    """
    name = definition.target_container_name if isinstance(definition, EphemeralContainer) else ""
    if not name:
        return ""
    found = runtime.list({**labels.of_uid(node, effect.uid), labels.CONTAINER_NAME: name})
    running = [one.id for one in found if one.state == "running"]
    if not running:
        raise ConfigRefusal(f"unable to find target container {name}")
    return running[0]


def _lost_its_sandbox(runtime: FencedRuntime, effect: wanted.StartContainer) -> bool:
    try:
        sandbox = runtime.inspect(effect.sandbox_id)
    except Refusal:
        return False
    return sandbox is None or sandbox.state == "exited"


def _discard(runtime: FencedRuntime, container_id: str) -> None:
    """Remove a container that never ran. If that fails, the next attempt replaces it."""
    with suppress(Refusal):
        runtime.remove(container_id)


def _code_of_failed_start(runtime: FencedRuntime, container_id: str) -> int:
    """Return the exit code that the runtime recorded (such as 127), else the kubelet's 128."""
    try:
        left = runtime.inspect(container_id)
    except Refusal:
        return NOT_STARTED_EXIT
    return (left.exit_code if left is not None else 0) or NOT_STARTED_EXIT


def _container_refused(
    effect: wanted.ContainerEffect,
    reason: StartReason,
    message: str,
    *,
    container_id: str = "",
    exit_code: int = NOT_STARTED_EXIT,
) -> Signal:
    return signals.ContainerRefused(
        subject=effect.subject,
        intent=effect.intent,
        reason=reason,
        message=message,
        id=container_id,
        exit_code=exit_code,
    )


def container_dead(
    effect: wanted.StartContainer | wanted.StopContainer | wanted.FindContainer,
    container_id: str,
    dead: ContainerState | None,
) -> signals.ContainerDead:
    """Return the signal for a dead container; `dead` is None if the container no longer exists."""
    if dead is None:
        return signals.ContainerDead(
            subject=effect.subject,
            intent=effect.intent,
            id=container_id,
            exit_code=UNKNOWN_EXIT,
            reason=STATUS_UNKNOWN,
            message="the container no longer existed when it was to be stopped",
        )
    return signals.ContainerDead(
        subject=effect.subject,
        intent=effect.intent,
        id=container_id,
        exit_code=dead.exit_code,
        reason=exit_reason(dead),
        message=dead.error,
        started_at=dead.started_at,
        finished_at=dead.finished_at,
    )


def exit_reason(dead: ContainerState) -> str:
    """Return the value of `lastState.terminated.reason`."""
    if dead.oom_killed:
        return "OOMKilled"
    return "Error" if dead.exit_code else "Completed"
