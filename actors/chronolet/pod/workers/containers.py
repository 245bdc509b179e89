"""The containers of a pod: created ahead of their start, made and started, stopped.

Comes in: `wanted.CreateContainer`, `StartContainer`, `StopContainer`. Goes out: calls to the runtime and to volumes;
`signals`. Next: `decider`. Answers to pkg/kubelet/kuberuntime/kuberuntime_container.go.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from msgspec.structs import replace

from chronolet.kernel.kind import EffectContext
from chronolet.pod import signals, wanted
from chronolet.pod.specs import mounting, rights, specs
from chronolet.pod.specs.devices import given
from chronolet.pod.specs.rights import ConfigRefusal
from chronolet.pod.state import STATUS_UNKNOWN
from chronolet.pod.workers.making import found_or_made, fresh, ran, ran_after_all
from chronolet.pod.workers.outside import Outside
from chronolet.pod.workers.patience import tried_again
from chronolet.pod.workers.recent import Begun
from chronolet.pod.workers.stopping import stopped
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
"""What the kubelet puts where nobody saw a container end."""
NOT_STARTED_EXIT = 128
"""What it puts where a container was made and could not be started."""


class ContainerWorker:
    """One method an effect; no state of its own."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def create(self, effect: wanted.CreateContainer, context: EffectContext) -> Signal:
        """One try: whatever stands in the way, the start meets it again and knows what to do."""
        runtime = self._outside.fenced(context)
        if effect.image and (said := _another_image(runtime, effect)):
            return _container_refused(effect, "CreateContainerError", said)
        spec = self._spec(runtime, effect, context)
        if not isinstance(spec, ContainerSpec):
            return spec
        try:
            made = found_or_made(runtime, spec, lambda: runtime.create_container(spec))
        except Refusal as refusal:
            return _container_refused(effect, "CreateContainerError", str(refusal))
        if made.state != "created":
            return _container_refused(effect, "CreateContainerError", f"container {made.id} is {made.state}")
        self._outside.created.note(made.id, spec.labels[labels.DIGEST])
        return signals.ContainerMade(subject=effect.subject, intent=effect.intent, id=made.id)

    def start(self, effect: wanted.StartContainer, context: EffectContext) -> Signal:
        runtime = self._outside.fenced(context)
        try:
            self._outside.keep(effect, context)
        except SpecRefusal as refusal:
            return _container_refused(effect, "CreateContainerConfigError", str(refusal))
        spec = self._spec(runtime, effect, context)
        if not isinstance(spec, ContainerSpec):
            return spec

        def made() -> ContainerState:
            return self._made_ahead(runtime, effect, spec) or found_or_made(
                runtime, spec, lambda: runtime.create_container(spec)
            )

        try:
            found = tried_again(runtime, context, made, made)
        except Refusal as refusal:
            return _container_refused(effect, "CreateContainerError", str(refusal))
        return self._run(runtime, context, effect, spec, found)

    def _spec(
        self, runtime: FencedRuntime, effect: wanted.ContainerEffect, context: EffectContext
    ) -> ContainerSpec | Signal:
        """What the runtime is asked to make, or why nothing is."""
        definition = specs.definition(effect.manifest, effect.container)
        if definition is None:
            said = f"{effect.pod}: the manifest has no container {effect.container!r}"
            return _container_refused(effect, "CreateContainerConfigError", said)
        try:
            return specs.container(effect, definition, self._making(runtime, effect, definition, context))
        except (ConfigRefusal, UnknownReferenceError, TooLargeError) as refusal:
            return _container_refused(effect, "CreateContainerConfigError", str(refusal))
        except VolumeRefusal as refusal:
            return _container_refused(effect, "FailedMount", str(refusal))
        except Refusal as refusal:
            return _container_refused(effect, "CreateContainerError", str(refusal))

    def _making(
        self, runtime: FencedRuntime, effect: wanted.ContainerEffect, definition: Container, context: EffectContext
    ) -> specs.Making:
        """All that the manifest does not say. Raises ConfigRefusal, TooLargeError, VolumeRefusal, Refusal."""
        outside = self._outside

        def image_user() -> str:
            found = runtime.image(effect.image_id or definition.image)
            return found.user if found is not None else ""

        granted = rights.granted(effect.manifest, definition, outside.host, image_user)
        place = outside.place(effect)
        context.fence("volumes.prepare")
        env = specs.environment(effect.manifest, definition, place)
        mounts = mounting.mounts(outside, effect, definition, place, env)
        context.done("volumes.prepare")
        return specs.Making(
            node=outside.node,
            cause=context.cause,
            run=outside.run(),
            place=place,
            mounts=mounts,
            granted=granted,
            given=given(effect, lambda: runtime.engine().knows_cdi, outside.cdi),
            holding=outside.holding,
            target_id=_target(runtime, outside.node, effect, definition),
        )

    def _run(
        self,
        runtime: FencedRuntime,
        context: EffectContext,
        effect: wanted.StartContainer,
        spec: ContainerSpec,
        made: ContainerState,
    ) -> Signal:
        # Before it runs: what ends at once may be told of before this worker gets any further.
        self._outside.link_log(effect, made.id, context)

        def begun(container_id: str) -> None:
            self._outside.hold(container_id, spec.held)

        try:
            found = tried_again(
                runtime,
                context,
                lambda: ran(runtime, made, begun),
                lambda: ran_after_all(runtime, made.id, begun),
            )
        except Refusal as refusal:
            if refusal.kind == "not_found" and made.id == effect.made_id:
                # It was removed since it was created ahead.
                return self.start(replace(effect, made_id=""), context)
            if _lost_its_sandbox(runtime, effect):
                # Nothing of this attempt has run: it is made again, in the next sandbox.
                return _container_refused(effect, "CreateContainerError", _discarded(runtime, made.id, refusal))
            said = f'failed to start container "{effect.container}": {refusal}'
            said += rights.lacking(self._outside.host) if spec.privileged else ""
            if refusal.kind in ("unavailable", "timeout"):
                # It may run or not: without an id the same attempt is made again and finds out.
                return _container_refused(effect, "RunContainerError", said)
            code = _code_of_failed_start(runtime, made.id)
            return _container_refused(effect, "RunContainerError", said, container_id=made.id, exit_code=code)
        if found.state == "exited":
            return container_dead(effect, found.id, found)
        self._outside.begun.note(found.id, Begun.of(found))
        return signals.ContainerUp(
            subject=effect.subject, intent=effect.intent, id=found.id, started_at=found.started_at
        )

    def _made_ahead(
        self, runtime: FencedRuntime, effect: wanted.StartContainer, spec: ContainerSpec
    ) -> ContainerState | None:
        """What was created ahead of this start, if it is still there and still what is wanted."""
        if not effect.made_id:
            return None
        digest = spec.labels[labels.DIGEST]
        if self._outside.created.take(effect.made_id) == digest:
            return fresh(spec, effect.made_id)
        found = runtime.inspect(effect.made_id)
        if found is None or found.state not in ("created", "running", "exited"):
            return None
        return found if found.labels.get(labels.DIGEST) == digest else None

    def stop(self, effect: wanted.StopContainer, context: EffectContext) -> Signal:
        runtime = self._outside.fenced(context)

        def process_ended() -> None:
            context.send(signals.ProcessEnded(subject=effect.subject, intent=effect.intent, id=effect.id))

        def watched(running: Begun) -> AbstractContextManager[None]:
            return self._outside.processes.watched(running.pid, effect.id, process_ended)

        try:
            dead = stopped(
                runtime,
                context,
                effect.id,
                known=self._outside.begun.take(effect.id),
                deadline=effect.deadline,
                longest_seconds=effect.grace_period_seconds,
                watched=watched if effect.with_pod else lambda _: nullcontext(),
            )
        except Refusal as refusal:
            return signals.StopRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return container_dead(effect, effect.id, dead)


def _another_image(runtime: FencedRuntime, effect: wanted.CreateContainer) -> str:
    """What the image's name means by now, in words; empty if it still is the image of the request."""
    try:
        found = runtime.image(effect.image)
    except Refusal as refusal:
        return str(refusal)
    if found is None:
        return f"image {effect.image} is not there any more"
    return "" if found.id == effect.image_id else f"image {effect.image} is {found.id} by now, not {effect.image_id}"


def _target(runtime: FencedRuntime, node: str, effect: wanted.ContainerEffect, definition: Container) -> str:
    """The id of the container that an ephemeral one looks at. ConfigRefusal if it does not run."""
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


def _discarded(runtime: FencedRuntime, container_id: str, why: Refusal) -> str:
    """Removes what was made for nothing; what cannot be removed gives way to the next try."""
    try:
        runtime.remove(container_id)
    except Refusal:
        return str(why)
    return str(why)


def _code_of_failed_start(runtime: FencedRuntime, container_id: str) -> int:
    """127 and the like, as the runtime noted it; the kubelet's 128 where it did not."""
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
    """How a container ended; without a state, that it is not there to be asked."""
    if dead is None:
        return signals.ContainerDead(
            subject=effect.subject,
            intent=effect.intent,
            id=container_id,
            exit_code=UNKNOWN_EXIT,
            reason=STATUS_UNKNOWN,
            message="the container could not be found when it was to be stopped",
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
    """The word that `lastState.terminated.reason` shows."""
    if dead.oom_killed:
        return "OOMKilled"
    return "Error" if dead.exit_code else "Completed"
