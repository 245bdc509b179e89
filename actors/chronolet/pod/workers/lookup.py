"""The worker that finds what an interrupted start or creation has left behind. It creates and starts nothing, and
removes containers that never ran.

Input: `wanted.FindSandbox`, `FindContainer` of an ending or failed pod; `DiscardContainer` of an obsolete creation.
Output: `signals`. Next: `decider`, which stops the containers that were found. Source: pkg/kubelet/pod_workers.go (a
terminating pod is never synced again, only killed).
"""

from __future__ import annotations

from chronolet.kernel.kind import EffectContext
from chronolet.pod import signals, wanted
from chronolet.pod.workers.containers import container_dead
from chronolet.pod.workers.dependencies import PodDependencies
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal
from chronolet.rules.names import names
from chronolet_schemas.envelope import Signal


class FindWorker:
    """The worker of FindSandbox, FindContainer and DiscardContainer: one method per effect; stateless."""

    def __init__(self, deps: PodDependencies) -> None:
        self._deps = deps

    def container(self, effect: wanted.FindContainer, context: EffectContext) -> Signal:
        """Find the attempt's container. Raises Refusal if the runtime does not answer, so that the effect fails."""
        found = self._ran(effect, effect.container, context)
        if found is None:
            return _nothing_to_start(effect, wanted.NOT_BEGUN)
        if found.state == "exited":
            return container_dead(effect, found.id, found)
        return signals.ContainerUp(
            subject=effect.subject, intent=effect.intent, id=found.id, started_at=found.started_at
        )

    def discard(self, effect: wanted.DiscardContainer, context: EffectContext) -> Signal:
        """Remove the attempt's container if it never ran. Raises Refusal if the runtime does not answer; the next
        creation of this attempt then replaces the container.
        """
        self._started(effect, effect.container, context)
        return _nothing_to_start(effect, wanted.OUTDATED)

    def sandbox(self, effect: wanted.FindSandbox, context: EffectContext) -> Signal:
        """Find the attempt's sandbox. Raises Refusal if the runtime does not answer, so that the effect fails."""
        found = self._ran(effect, names.SANDBOX, context)
        if found is None:
            return signals.SandboxRefused(subject=effect.subject, intent=effect.intent, message=wanted.NOT_BEGUN)
        if found.state == "exited":
            return signals.SandboxDown(
                subject=effect.subject,
                intent=effect.intent,
                id=found.id,
                exit_code=found.exit_code,
                started_at=found.started_at,
                finished_at=found.finished_at,
            )
        return signals.SandboxUp(
            subject=effect.subject, intent=effect.intent, id=found.id, ip=found.ip, started_at=found.started_at
        )

    def _ran(
        self, effect: wanted.FindSandbox | wanted.FindContainer, container: str, context: EffectContext
    ) -> ContainerState | None:
        """Return the pod's container with the attempt's name, if it was started and still exists."""
        found = self._started(effect, container, context)
        return found if found is not None and found.state != "removed" else None

    def _started(
        self,
        effect: wanted.FindSandbox | wanted.FindContainer | wanted.DiscardContainer,
        container: str,
        context: EffectContext,
    ) -> ContainerState | None:
        """Return the pod's container with the attempt's name, if it was started. A container that never ran is removed;
        the runtime refuses the removal if an interrupted start takes effect after all.
        """
        found = self._found(effect, container, context)
        if found is None or found.state != "created":
            return found
        try:
            self._deps.fenced(context).remove_dead(found.id)
        except Refusal as refusal:
            if refusal.kind != "conflict":
                raise
            return self._found(effect, container, context)
        return None

    def _found(
        self,
        effect: wanted.FindSandbox | wanted.FindContainer | wanted.DiscardContainer,
        container: str,
        context: EffectContext,
    ) -> ContainerState | None:
        """Return the container with the attempt's name, if it belongs to the pod."""
        namespace, _, name = effect.pod.partition("/")
        found = self._deps.fenced(context).inspect(
            names.container_name(
                container=container, pod=name, namespace=namespace, uid=effect.uid, attempt=effect.attempt
            )
        )
        owner = labels.read(found.labels) if found is not None else None
        ours = owner is not None and (owner.uid, owner.container) == (effect.uid, container)
        return found if ours else None


def _nothing_to_start(effect: wanted.FindContainer | wanted.DiscardContainer, message: str) -> Signal:
    return signals.ContainerRefused(
        subject=effect.subject, intent=effect.intent, reason="CreateContainerError", message=message
    )
