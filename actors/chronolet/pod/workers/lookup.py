"""What a start or a creation that may have been under way has left. Nothing is made, nothing is started; what never ran
is removed.

Comes in: `wanted.FindSandbox`, `FindContainer`, of a pod that is over; `DiscardContainer`, of a creation.
Goes out: `signals`. Next: `decider`, which stops what was found. Answers to: pkg/kubelet/pod_workers.go (a terminating
pod is never synced again, only killed).
"""

from __future__ import annotations

from chronolet.kernel.kind import EffectContext
from chronolet.pod import signals, wanted
from chronolet.pod.workers.containers import container_dead
from chronolet.pod.workers.outside import Outside
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal
from chronolet.rules.names import names
from chronolet_schemas.envelope import Signal


class FindWorker:
    """One method an effect; no state of its own."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside

    def container(self, effect: wanted.FindContainer, context: EffectContext) -> Signal:
        """Refusal where the runtime cannot be asked: the effect has failed then."""
        found = self._ran(effect, effect.container, context)
        if found is None:
            return _nothing_to_start(effect, wanted.NOT_BEGUN)
        if found.state == "exited":
            return container_dead(effect, found.id, found)
        return signals.ContainerUp(
            subject=effect.subject, intent=effect.intent, id=found.id, started_at=found.started_at
        )

    def discard(self, effect: wanted.DiscardContainer, context: EffectContext) -> Signal:
        """Refusal where the runtime cannot be asked: the next creation of this attempt replaces what is left."""
        self._begun(effect, effect.container, context)
        return _nothing_to_start(effect, wanted.OUTDATED)

    def sandbox(self, effect: wanted.FindSandbox, context: EffectContext) -> Signal:
        """Likewise."""
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
        """What came to run under the attempt's name, if it is the pod's."""
        found = self._begun(effect, container, context)
        return found if found is not None and found.state != "removed" else None

    def _begun(
        self,
        effect: wanted.FindSandbox | wanted.FindContainer | wanted.DiscardContainer,
        container: str,
        context: EffectContext,
    ) -> ContainerState | None:
        """What has the attempt's name and was started, if it is the pod's. What was not is removed, but by a call that
        the runtime refuses if a start that was cut off comes through after all.
        """
        found = self._found(effect, container, context)
        if found is None or found.state != "created":
            return found
        try:
            self._outside.fenced(context).remove_dead(found.id)
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
        """What has the attempt's name, if it is the pod's."""
        namespace, _, name = effect.pod.partition("/")
        found = self._outside.fenced(context).inspect(
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
