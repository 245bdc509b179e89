"""The worker that creates, starts and stops a pod's sandbox, and finally removes everything that belongs to the pod.

Input: `wanted.StartSandbox`, `KeepSpec`, `StopSandbox`, `Cleanup`. Output: calls to the runtime and to volumes;
`signals`. Next: `decider`. Source: pkg/kubelet/kuberuntime/kuberuntime_sandbox.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from chronolet.kernel.kind import EffectContext
from chronolet.pod import signals, wanted
from chronolet.pod.specs import specs
from chronolet.pod.workers.dependencies import PodDependencies, milliseconds_now
from chronolet.pod.workers.images import ensure
from chronolet.pod.workers.known_containers import MainProcess
from chronolet.pod.workers.starts.creation import find_or_create, repeat_if_half_restored, start_once
from chronolet.pod.workers.starts.runtime_restart import retry_after_restart
from chronolet.pod.workers.stops.stopping import stop_container
from chronolet.ports.pods.specs import SpecRefusal
from chronolet.ports.pods.volumes import VolumeRefusal
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import ContainerState, Refusal
from chronolet.rules.names import names
from chronolet.rules.names.hostnames import HostnameError
from chronolet.rules.resources.qos_class import least_oom_score_adj
from chronolet_schemas.envelope import Signal


class SandboxWorker:
    """The worker of StartSandbox, KeepSpec, StopSandbox and Cleanup: one method per effect; stateless."""

    def __init__(self, deps: PodDependencies) -> None:
        self._deps = deps

    def start(self, effect: wanted.StartSandbox, context: EffectContext) -> Signal:
        runtime = self._deps.fenced(context)
        image = self._deps.pause_image
        deps = self._deps
        try:
            spec = specs.sandbox(
                effect,
                node=deps.node,
                image=image,
                cause=context.cause,
                run=deps.run(),
                least_oom_score_adj=least_oom_score_adj(deps.host.missing_capabilities()),
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
            self._deps.keep(effect, context)
        except SpecRefusal as refusal:
            return _refused(effect, str(refusal))

        def create_and_start() -> ContainerState:
            created = find_or_create(runtime, spec, make)
            if created.state == "created":
                context.send(signals.SandboxMade(subject=effect.subject, intent=effect.intent, id=created.id))
            return start_once(runtime, created)

        attempt = partial(repeat_if_half_restored, create_and_start, deps.processes)
        try:
            found = retry_after_restart(runtime, context, attempt, attempt, deps.timing.restart_patience_seconds)
        except Refusal as refusal:
            self._discard(runtime, spec.name, spec.labels)
            return _refused(effect, str(refusal))
        if found.state == "exited":
            return _sandbox_down(effect, found.id, found)
        deps.main_processes.note(found.id, MainProcess.of(found))
        # On the host network the pod's address is the node's.
        host_ip = deps.host.address()
        return signals.SandboxUp(
            subject=effect.subject,
            intent=effect.intent,
            id=found.id,
            ip=host_ip if spec.host_network else found.ip,
            host_ip=host_ip,
            started_at=found.started_at,
        )

    def keep_spec(self, effect: wanted.KeepSpec, context: EffectContext) -> Signal:
        """Store the pod's spec. Raises SpecRefusal if it cannot be written; the kernel then retries."""
        self._deps.keep(effect, context)
        return signals.SpecKept(subject=effect.subject, intent=effect.intent)

    def _fetch_pause_image(self, runtime: FencedRuntime) -> None:
        reference = self._deps.pause_image
        built = self._deps.builtin(reference)
        if built is None:
            ensure.fetch(runtime, self._deps.pulls.keyring, reference)
        else:
            runtime.import_image(reference, built)

    def _discard(self, runtime: FencedRuntime, name: str, written: Mapping[str, str]) -> None:
        """Remove our sandbox that failed to start, and its network endpoint. The next start finds what cannot be
        removed now. `DiscardContainer` removes the containers created for it, because a creation may still be in
        progress.

        With a kubelet, the next sandbox and its endpoint have new names; here, the next start is the same attempt, with
        the same names.
        """
        try:
            left = runtime.inspect(name)
            if left is not None and left.state != "running" and labels.differing(written, left.labels) is None:
                runtime.remove(left.id)
                runtime.forget_endpoint(name)
        except Refusal:
            return

    def stop(self, effect: wanted.StopSandbox, context: EffectContext) -> Signal:
        runtime = self._deps.fenced(context)
        grace = effect.grace_period_seconds
        try:
            dead = stop_container(
                runtime,
                context,
                effect.id,
                known=self._deps.main_processes.take(effect.id),
                deadline=milliseconds_now() + grace * 1000,
                longest_seconds=grace,
                timing=self._deps.timing,
                # Not through the runtime: nobody needs the event that it emits for this signal, unlike that for a
                # signal to an app.
                signalled=lambda known: self._deps.processes.signal(
                    known.pid, effect.id, known.command, known.stop_signal
                ),
            )
        except Refusal as refusal:
            return signals.StopRefused(subject=effect.subject, intent=effect.intent, message=str(refusal))
        return _sandbox_down(effect, effect.id, dead)

    def cleanup(self, effect: wanted.Cleanup, context: EffectContext) -> Signal:
        runtime = self._deps.fenced(context)
        try:
            left = runtime.list(labels.of_uid(self._deps.node, effect.uid))
            self._deps.remove_logs(effect, left)
            # Remove sandboxes last: a container must not outlive the network it joined.
            for one in sorted(left, key=lambda one: one.labels.get(labels.CONTAINER_NAME) == names.SANDBOX):
                runtime.remove(one.id)
            context.fence("volumes.remove")
            self._deps.volumes.remove(effect.uid)
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
