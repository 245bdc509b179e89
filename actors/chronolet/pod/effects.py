"""The only way out of a pod: workers that make, stop and remove what it wants on the runtime and the host's disk.

Comes in: the effects of `wanted`. Goes out: calls to the runtime and to volumes; the answers of `signals`.
Next: `decider`. Answers to: pkg/kubelet/kuberuntime (sandbox, container).

Every worker may be killed at any line and run again: it looks for its own earlier work by name and labels first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from chronolet.kernel.kind import Effect, EffectContext, Job
from chronolet.pod import images, signals, specs, wanted
from chronolet.pod.keeping import keeping_the_end
from chronolet.pod.making import found_or_made, ran
from chronolet.pod.stopping import stopped
from chronolet.ports import labels
from chronolet.ports.fenced import FencedRuntime
from chronolet.ports.runtime import BuiltImage, ContainerState, Refusal, Runtime
from chronolet.ports.specs import KeptSpec, SpecRefusal, Specs
from chronolet.ports.volumes import VolumeRefusal, Volumes
from chronolet.rules import names
from chronolet_schemas.envelope import Signal

StartReason = Literal["CreateContainerError", "RunContainerError", "CreateContainerConfigError", "FailedMount"]

UNKNOWN_EXIT = 137
"""What the kubelet puts where nobody saw a container end."""
NOT_STARTED_EXIT = 128
"""What it puts where a container was made and could not be started."""

_START_SECONDS = 300.0
_STOP_SECONDS = 60.0  # beside the grace
_REMOVE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Outside:
    """What pods touch, and what is the same for all of them. `builtin` builds an image that no registry has; `run` is
    the log's.
    """

    runtime: Runtime
    volumes: Volumes
    node: str
    pause_image: str
    builtin: Callable[[str], BuiltImage | None]
    specs: Specs
    pulls: images.Pulls
    run: Callable[[], str] = lambda: ""


def jobs(outside: Outside) -> Mapping[type[Effect], Job]:
    """The workers of a pod's effects, all one-shot."""
    workers = Workers(outside)
    plain: dict[type[Effect], Job] = {
        wanted.StartSandbox: Job(workers.start_sandbox, _START_SECONDS),
        wanted.KeepSpec: Job(workers.keep_spec),
        wanted.StopSandbox: Job(workers.stop_sandbox, lambda effect: effect.grace_period_seconds + _STOP_SECONDS),
        wanted.EnsureImage: images.job(outside.runtime, outside.pulls),
        wanted.StartContainer: Job(workers.start_container, _START_SECONDS),
        wanted.StopContainer: Job(workers.stop_container, lambda effect: effect.grace_period_seconds + _STOP_SECONDS),
        wanted.RemoveContainer: Job(workers.remove_container, _REMOVE_SECONDS),
        wanted.Cleanup: Job(workers.cleanup, _REMOVE_SECONDS),
    }
    return {effect: replace(job, run=keeping_the_end(outside.specs, job.run)) for effect, job in plain.items()}


class Workers:
    """One method an effect; no state of their own."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    # -- sandbox ---------------------------------------------------------------------------------------------------

    def start_sandbox(self, effect: wanted.StartSandbox, context: EffectContext) -> Signal:
        runtime = FencedRuntime(self._outside.runtime, context)
        image = self._outside.pause_image
        spec = specs.sandbox(effect, node=self._outside.node, image=image, cause=context.cause, run=self._outside.run())

        def make() -> str:
            try:
                return runtime.create_sandbox(spec)
            except Refusal as refusal:
                if refusal.kind != "not_found":
                    raise
            self._fetch_pause_image(runtime)
            return runtime.create_sandbox(spec)

        try:
            self._keep(effect, context)
        except SpecRefusal as refusal:
            return signals.SandboxRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        try:
            found = ran(runtime, found_or_made(runtime, spec, make))
        except Refusal as refusal:
            self._discard(runtime, spec.name, spec.labels)
            return signals.SandboxRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        if found.state == "exited":
            return _sandbox_down(effect, found.id, found)
        return signals.SandboxUp(
            subject=effect.subject, intent=effect.intent, id=found.id, ip=found.ip, started_at=found.started_at
        )

    def keep_spec(self, effect: wanted.KeepSpec, context: EffectContext) -> Signal:
        """SpecRefusal where the disk takes nothing: the kernel tries again."""
        self._keep(effect, context)
        return signals.SpecKept(subject=effect.subject, intent=effect.intent)

    def _keep(
        self, effect: wanted.StartSandbox | wanted.KeepSpec | wanted.StartContainer, context: EffectContext
    ) -> None:
        """The manifest lies on the disk before anything of it runs: who finds the log lost, finds it there."""
        context.fence("spec.keep")
        self._outside.specs.keep(
            KeptSpec(
                node=self._outside.node,
                pod=effect.pod,
                uid=effect.uid,
                source=effect.origin.source,
                digest=effect.origin.digest,
                accepted_at=effect.origin.accepted_at,
                manifest=effect.manifest,
            )
        )
        context.done("spec.keep")

    def _fetch_pause_image(self, runtime: FencedRuntime) -> None:
        reference = self._outside.pause_image
        built = self._outside.builtin(reference)
        if built is None:
            images.fetch(runtime, self._outside.pulls.keyring, reference)
        else:
            runtime.import_image(reference, built)

    def _discard(self, runtime: FencedRuntime, name: str, written: Mapping[str, str]) -> None:
        """Remove a sandbox of ours that would not start. What cannot be removed now is found by the next try."""
        try:
            left = runtime.inspect(name)
            if left is not None and left.state != "running" and labels.differing(written, left.labels) is None:
                runtime.remove(left.id)
        except Refusal:
            return

    def stop_sandbox(self, effect: wanted.StopSandbox, context: EffectContext) -> Signal:
        runtime = FencedRuntime(self._outside.runtime, context)
        grace = effect.grace_period_seconds
        try:
            dead = stopped(runtime, context, effect.id, deadline=_now() + grace * 1000, longest_seconds=grace)
        except Refusal as refusal:
            return signals.StopRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return _sandbox_down(effect, effect.id, dead)

    # -- containers ------------------------------------------------------------------------------------------------

    def start_container(self, effect: wanted.StartContainer, context: EffectContext) -> Signal:
        runtime = FencedRuntime(self._outside.runtime, context)
        definition = specs.definition(effect.manifest, effect.container)
        if definition is None:
            said = f"{effect.pod}: the manifest has no container {effect.container!r}"
            return _container_refused(effect, "CreateContainerConfigError", said)
        try:
            self._keep(effect, context)
            context.fence("volumes.prepare")
            paths = self._outside.volumes.prepare(effect.uid, effect.manifest.spec.volumes)
            context.done("volumes.prepare")
        except SpecRefusal as refusal:
            return _container_refused(effect, "CreateContainerConfigError", str(refusal))
        except VolumeRefusal as refusal:
            return _container_refused(effect, "FailedMount", str(refusal))
        spec = specs.container(
            effect, definition, paths, node=self._outside.node, cause=context.cause, run=self._outside.run()
        )
        try:
            made = found_or_made(runtime, spec, lambda: runtime.create_container(spec))
        except Refusal as refusal:
            return _container_refused(effect, "CreateContainerError", str(refusal))
        return self._run(runtime, effect, made)

    def _run(self, runtime: FencedRuntime, effect: wanted.StartContainer, made: ContainerState) -> Signal:
        try:
            found = ran(runtime, made)
        except Refusal as refusal:
            said = f'failed to start container "{effect.container}": {refusal}'
            if refusal.kind in ("unavailable", "timeout"):
                # It may run or not: without an id the same attempt is made again and finds out.
                return _container_refused(effect, "RunContainerError", said)
            code = _code_of_failed_start(runtime, made.id)
            return _container_refused(effect, "RunContainerError", said, container_id=made.id, exit_code=code)
        if found.state == "exited":
            return _container_dead(effect, found.id, found)
        return signals.ContainerUp(
            subject=effect.subject, intent=effect.intent, id=found.id, started_at=found.started_at
        )

    def stop_container(self, effect: wanted.StopContainer, context: EffectContext) -> Signal:
        runtime = FencedRuntime(self._outside.runtime, context)
        try:
            dead = stopped(
                runtime, context, effect.id, deadline=effect.deadline, longest_seconds=effect.grace_period_seconds
            )
        except Refusal as refusal:
            return signals.StopRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return _container_dead(effect, effect.id, dead)

    def remove_container(self, effect: wanted.RemoveContainer, context: EffectContext) -> Signal:
        runtime = FencedRuntime(self._outside.runtime, context)
        try:
            found = runtime.inspect(effect.id)
            if found is not None and found.state == "running":
                said = f"{effect.container}: container {effect.id} runs; only dead ones are removed"
                return signals.RemoveRefused(subject=effect.subject, intent=effect.intent, message=said)
            if found is not None:
                runtime.remove(effect.id)
        except Refusal as refusal:
            return signals.RemoveRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return signals.Removed(subject=effect.subject, intent=effect.intent)

    # -- the end ---------------------------------------------------------------------------------------------------

    def cleanup(self, effect: wanted.Cleanup, context: EffectContext) -> Signal:
        runtime = FencedRuntime(self._outside.runtime, context)
        try:
            left = runtime.list(labels.of_uid(self._outside.node, effect.uid))
            # Sandboxes last: a container must not outlive the network it joined.
            for one in sorted(left, key=lambda one: one.labels.get(labels.CONTAINER_NAME) == names.SANDBOX):
                runtime.remove(one.id)
            context.fence("volumes.remove")
            self._outside.volumes.remove(effect.uid)
            context.done("volumes.remove")
        except (Refusal, VolumeRefusal) as refusal:
            return signals.CleanupRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return signals.CleanedUp(subject=effect.subject, intent=effect.intent)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _code_of_failed_start(runtime: FencedRuntime, container_id: str) -> int:
    """127 and the like, as the runtime noted it; the kubelet's 128 where it did not."""
    try:
        left = runtime.inspect(container_id)
    except Refusal:
        return NOT_STARTED_EXIT
    return (left.exit_code if left is not None else 0) or NOT_STARTED_EXIT


def _sandbox_down(
    effect: wanted.StartSandbox | wanted.StopSandbox, container_id: str, dead: ContainerState | None
) -> signals.SandboxDown:
    return signals.SandboxDown(
        subject=effect.subject,
        intent=effect.intent,
        id=container_id,
        exit_code=dead.exit_code if dead else 0,
        started_at=dead.started_at if dead else 0,
        finished_at=dead.finished_at if dead else 0,
    )


def _container_refused(
    effect: wanted.StartContainer,
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


def _container_dead(
    effect: wanted.StartContainer | wanted.StopContainer, container_id: str, dead: ContainerState | None
) -> signals.ContainerDead:
    if dead is None:
        return signals.ContainerDead(
            subject=effect.subject,
            intent=effect.intent,
            id=container_id,
            exit_code=UNKNOWN_EXIT,
            reason="ContainerStatusUnknown",
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
