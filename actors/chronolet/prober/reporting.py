"""The KubeEvents that accompany a probe's events, with the kubelet's reasons and texts. Pure.

Input: State, an event of the probe. Output: `kube_events.Recorded`, none for most events. Next: `decider` appends them
to the event. Source: pkg/kubelet/prober/prober.go (probe), pkg/kubelet/events/event.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.prober.state import State
from chronolet_schemas import kube_events, prober
from chronolet_schemas.envelope import Event


def kube_events_for(state: State, event: Event) -> Sequence[kube_events.Recorded]:
    """Return the KubeEvents for `event`: those that the kubelet records, and ProbeUnjudged, which the kubelet does not
    have. Like the kubelet, record none for an unknown outcome that is not an error.
    """
    match event:
        case prober.ProbeFailed(unknown=False):
            return (_recorded(state, "Unhealthy", f"{event.probe} probe failed: {event.output}"),)
        case prober.ProbeErrored():
            text = f"{event.probe} probe errored and resulted in unknown state: {event.output}"
            return (_recorded(state, "Unhealthy", text),)
        case prober.ProbeUnjudged():
            return (_recorded(state, "ProbeUnjudged", _unjudged(event)),)
        case prober.ProbeSucceeded(warning=True):
            return (_recorded(state, "ProbeWarning", f"{event.probe} probe warning: {event.output}"),)
        case _:
            return ()


def _unjudged(event: prober.ProbeUnjudged) -> str:
    """Return the message. It contains no numbers, so that equal messages are aggregated."""
    causes = " and ".join(_SHORT_OF[one] for one in event.short_of)
    return f"{event.probe} probe timed out and was not counted: {causes}"


_SHORT_OF: dict[prober.Shortage, str] = {
    "agent": "the agent or the engine was stalled",
    "cpu": "the machine was short of CPU",
    "memory": "the machine was short of memory",
    "io": "the machine was short of disk I/O",
}


def _recorded(state: State, reason: str, message: str) -> kube_events.Recorded:
    namespace, _, name = state.pod.partition("/")
    return kube_events.Recorded(
        object_kind="Pod",
        namespace=namespace,
        name=name,
        uid=state.uid,
        field_path=state.field,
        severity="Warning",
        reason=reason,
        message=message,
    )
