"""The worker that reads a dead container's termination message and finds out whether the container was OOM-killed.

Input: `wanted.ReadExit`. Output: `signals.ExitRead`. Next: `decider`. Source:
pkg/kubelet/kuberuntime/kuberuntime_container.go (getTerminationMessage, readLastStringFromContainerLogs).
"""

from __future__ import annotations

from chronolet.kernel.kind import EffectContext
from chronolet.pod import signals, wanted
from chronolet.pod.workers.dependencies import PodDependencies
from chronolet.ports.pods.volumes import VolumeRefusal
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import Refusal
from chronolet_schemas.envelope import Signal

MESSAGE_BYTES = 4096
LOG_BYTES = 2048
LOG_LINES = 80


class ExitWorker:
    """The worker of ReadExit; stateless."""

    def __init__(self, deps: PodDependencies) -> None:
        self._deps = deps

    def read(self, effect: wanted.ReadExit, context: EffectContext) -> Signal:
        """Read the end of the message file, or the end of the logs if the file is empty, the container failed and the
        policy permits it.
        """
        runtime = self._deps.fenced(context)
        context.fence("volumes.read")
        message = self._from_file(effect)
        by_logs = not message and effect.exit_code != 0 and effect.policy == "FallbackToLogsOnError"
        # The kernel log also contains kills that the runtime missed, and kills in containers that have been removed.
        oom_killed = self._deps.kills.named(effect.id)
        try:
            found = runtime.inspect(effect.id)
            oom_killed = oom_killed or (found is not None and found.oom_killed)
            if by_logs and found is not None:
                message = _from_logs(runtime, effect.id)
        except Refusal as refusal:
            message = f"Error on reading termination message from logs: {refusal}" if by_logs else message
        return signals.ExitRead(subject=effect.subject, intent=effect.intent, message=message, oom_killed=oom_killed)

    def _from_file(self, effect: wanted.ReadExit) -> str:
        if not effect.path:
            return ""
        try:
            written = self._deps.volumes.last_words(effect.uid, effect.container, effect.attempt, MESSAGE_BYTES)
        except VolumeRefusal as refusal:
            return f"Error on reading termination log {refusal}"
        return written.decode(errors="replace")


def _from_logs(runtime: FencedRuntime, container_id: str) -> str:
    last = b""
    for _, piece in runtime.logs(container_id, LOG_LINES):
        last = (last + piece)[-LOG_BYTES:]
    return last.decode(errors="replace")
