"""A pod's share of the node: when it is requested, granted and released. Pure.

Input: State, now; replies of `qos`. Output: `pod.CgroupRequested`, `pod.CgroupGranted`, `pod.CgroupReleased`,
`pod.HostPortsAwaited`, `pod.PodFailed`. Next: `admission`. Source: pkg/kubelet/kubelet.go (canAdmitPod, syncPod),
pkg/kubelet/cm.

    none    -> asked
    asked   -> asked      there was no reply, or the spec has changed
    asked   -> granted
    asked   -> awaited    another pod holds a host port
    awaited -> granted
    awaited -> asked      the spec has changed
    granted -> asked      the spec has changed
    any     -> none       the pod will not run again, and its sandbox is not running
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.pod.state import State
from chronolet.rules.resources.needs import needs
from chronolet_schemas import pod, qos
from chronolet_schemas.envelope import Event

KIND = "qos"
ASK_AGAIN_MS = 60_000
"""The interval at which a request without a reply is repeated."""

QosReply = qos.CgroupReady | qos.PodRefused | qos.HostPortsAwaited


def requests(state: State, now: int) -> Iterator[Event]:
    """Yield the request for the spec's share of the node, if it has not been sent or has had no reply for too long."""
    if not served(state):
        return
    share = state.share
    if share.digest != state.digest or (share.phase == "asked" and now >= share.asked_at + ASK_AGAIN_MS):
        # A pod that is running without a request was running before the log began.
        running = share.phase == "none" and state.sandbox.phase == "running"
        yield pod.CgroupRequested(
            pod=state.pod, uid=state.uid, needs=needs(state.manifest.spec), running=running, requested_at=now
        )


def served(state: State) -> bool:
    """Whether the kind `qos` takes part in the pod's admission."""
    return state.admission is not None and KIND in state.admission


def granted(state: State) -> bool:
    """Whether the pod has been granted the share that its spec needs; true if `qos` does not take part."""
    return not served(state) or (state.share.phase == "granted" and state.share.digest == state.digest)


def released(state: State) -> Iterator[Event]:
    """Release the share of a pod that will not run again, once the pod has no running sandbox."""
    if state.share.phase != "none" and state.sandbox.phase in ("absent", "failed", "dead"):
        yield pod.CgroupReleased(pod=state.pod, uid=state.uid)


def retry_times(state: State) -> Iterator[int]:
    """Yield the time at which the request is repeated, if it is outstanding."""
    if state.share.phase == "asked":
        yield state.share.asked_at + ASK_AGAIN_MS


def answered(state: State, message: QosReply, rejected: str) -> Sequence[Event]:
    """Return the events that follow from a reply. `rejected`: prefix of a rejected pod's message."""
    if isinstance(message, qos.PodRefused):
        text = f"{rejected}{message.message}"
        return (pod.PodFailed(pod=state.pod, uid=state.uid, reason=message.reason, message=text),)
    if isinstance(message, qos.HostPortsAwaited):
        if (state.share.phase, state.share.message) == ("awaited", message.message):
            return ()
        awaited = pod.HostPortsAwaited(pod=state.pod, uid=state.uid, holder=message.holder, message=message.message)
        return (awaited,)
    if state.share.phase == "granted" and state.share.parent == message.parent:
        return ()
    return (pod.CgroupGranted(pod=state.pod, uid=state.uid, parent=message.parent),)
