"""The sandbox of a pod: made, started, stopped, and at the end removed with all that was the pod's.

Comes in: `wanted.StartSandbox`, `StopSandbox`, `Cleanup`. Goes out: calls to the runtime and to volumes; `signals`.
Next: `decider`. Answers to pkg/kubelet/kuberuntime/kuberuntime_sandbox.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from chronolet.kernel.kind import EffectContext
from chronolet.pod import images, signals, specs, wanted
from chronolet.pod.making import found_or_made, ran
from chronolet.pod.outside import Outside, milliseconds_now
from chronolet.pod.patience import tried_again
from chronolet.pod.recent import Begun
from chronolet.pod.stopping import stopped
from chronolet.ports import labels
from chronolet.ports.fenced import FencedRuntime
from chronolet.ports.runtime import ContainerState, Refusal
from chronolet.ports.specs import SpecRefusal
from chronolet.ports.volumes import VolumeRefusal
from chronolet.rules import names
from chronolet.rules.hostnames import HostnameError
from chronolet.rules.qos_class import least_oom_score_adj
from chronolet_schemas.envelope import Signal


class SandboxWorker:
    """One method an effect; no state of its own."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def start(self, effect: wanted.StartSandbox, context: EffectContext) -> Signal:
        runtime = self._outside.fenced(context)
        image = self._outside.pause_image
        outside = self._outside
        try:
            spec = specs.sandbox(
                effect,
                node=outside.node,
                image=image,
                cause=context.cause,
                run=outside.run(),
                least_oom_score_adj=least_oom_score_adj(outside.host.missing_capabilities()),
            )
        except HostnameError as error:
            return _refused(effect, str(error))

        def make() -> str:
            try:
                return runtime.create_sandbox(spec)
            except Refusal as refusal:
                if refusal.kind != "not_found":
                    raise
            self._fetch_pause_image(runtime)
            return runtime.create_sandbox(spec)

        try:
            self._outside.keep(effect, context)
        except SpecRefusal as refusal:
            return _refused(effect, str(refusal))

        def started() -> ContainerState:
            made = found_or_made(runtime, spec, make)
            if made.state == "created":
                context.send(signals.SandboxMade(subject=effect.subject, intent=effect.intent, id=made.id))
            return ran(runtime, made)

        try:
            found = tried_again(runtime, context, started, started)
        except Refusal as refusal:
            self._discard(runtime, spec.name, spec.labels)
            return _refused(effect, str(refusal))
        if found.state == "exited":
            return _sandbox_down(effect, found.id, found)
        outside.begun.note(found.id, Begun.of(found))
        # On the node's network the pod's address is the node's.
        host_ip = outside.host.address()
        return signals.SandboxUp(
            subject=effect.subject,
            intent=effect.intent,
            id=found.id,
            ip=host_ip if spec.host_network else found.ip,
            host_ip=host_ip,
            started_at=found.started_at,
        )

    def keep_spec(self, effect: wanted.KeepSpec, context: EffectContext) -> Signal:
        """SpecRefusal where the disk takes nothing: the kernel tries again."""
        self._outside.keep(effect, context)
        return signals.SpecKept(subject=effect.subject, intent=effect.intent)

    def _fetch_pause_image(self, runtime: FencedRuntime) -> None:
        reference = self._outside.pause_image
        built = self._outside.builtin(reference)
        if built is None:
            images.fetch(runtime, self._outside.pulls.keyring, reference)
        else:
            runtime.import_image(reference, built)

    def _discard(self, runtime: FencedRuntime, name: str, written: Mapping[str, str]) -> None:
        """Remove a sandbox of ours that would not start, and what the network keeps of it. What cannot be removed now
        is found by the next try. The containers that were created for it go next (`DiscardContainer`): one of them may
        still be under way.

        The kubelet's next sandbox has another name, and so does its endpoint; ours is the same attempt again.
        """
        try:
            left = runtime.inspect(name)
            if left is not None and left.state != "running" and labels.differing(written, left.labels) is None:
                runtime.remove(left.id)
                runtime.forget_endpoint(name)
        except Refusal:
            return

    def stop(self, effect: wanted.StopSandbox, context: EffectContext) -> Signal:
        runtime = self._outside.fenced(context)
        grace = effect.grace_period_seconds
        try:
            dead = stopped(
                runtime,
                context,
                effect.id,
                known=self._outside.begun.take(effect.id),
                deadline=milliseconds_now() + grace * 1000,
                longest_seconds=grace,
                # Nobody needs the runtime's event of this signal; an app's is on record for whoever follows the events.
                signalled=lambda known: self._outside.processes.signal(
                    known.pid, effect.id, known.command, known.stop_signal
                ),
            )
        except Refusal as refusal:
            return signals.StopRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return _sandbox_down(effect, effect.id, dead)

    def cleanup(self, effect: wanted.Cleanup, context: EffectContext) -> Signal:
        runtime = self._outside.fenced(context)
        try:
            left = runtime.list(labels.of_uid(self._outside.node, effect.uid))
            self._outside.remove_logs(effect, left)
            # Sandboxes last: a container must not outlive the network it joined.
            for one in sorted(left, key=lambda one: one.labels.get(labels.CONTAINER_NAME) == names.SANDBOX):
                runtime.remove(one.id)
            context.fence("volumes.remove")
            self._outside.volumes.remove(effect.uid)
            context.done("volumes.remove")
        except (Refusal, VolumeRefusal) as refusal:
            return signals.CleanupRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return signals.CleanedUp(subject=effect.subject, intent=effect.intent)


def _refused(effect: wanted.StartSandbox, message: str) -> Signal:
    return signals.SandboxRefused(subject=effect.subject, intent=effect.intent, message=message)


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
