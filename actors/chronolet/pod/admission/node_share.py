"""A pod's share of the node: when it is asked for, is it there, when is it given back. Pure.

Comes in: State, now; answers of `qos`. Goes out: `pod.CgroupRequested`, `pod.CgroupGranted`, `pod.CgroupReleased`,
`pod.HostPortsAwaited`, `pod.PodFailed`. Next: `admission`. Source: pkg/kubelet/kubelet.go (canAdmitPod, syncPod),
pkg/kubelet/cm.

    nothing -> asked -> awaited -> granted -> asked (its spec has changed)
                     -> granted
                                -> nothing (the pod is over, and nothing of it runs)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from chronolet.pod.state import NodeShare, State
from chronolet.rules.resources.needs import needs
from chronolet_schemas import pod, qos
from chronolet_schemas.envelope import Event

KIND = "qos"
ASK_AGAIN_MS = 60_000
"""After how long without an answer the same is asked again."""

WAITING_FOR_PORTS = "WaitingForHostPorts"
"""Why a pod waits whose ports of the node another pod holds. The kubelet has no word for it: there it is rejected."""

QosReply = qos.CgroupReady | qos.PodRefused | qos.HostPortsAwaited


def requests(state: State, now: int) -> Iterator[Event]:
    """What the spec needs of the node, where that was not asked for yet, or too long ago."""
    if not served(state):
        return
    share = state.share
    if share.digest != state.digest or (share.phase == "asked" and now >= share.asked_at + ASK_AGAIN_MS):
        # What has never asked and runs was there before the log.
        running = share.phase == "none" and state.sandbox.phase == "running"
        yield pod.CgroupRequested(
            pod=state.pod, uid=state.uid, needs=needs(state.manifest.spec), running=running, requested_at=now
        )


def served(state: State) -> bool:
    """Whether there is somebody to ask."""
    return state.admission is not None and KIND in state.admission


def granted(state: State) -> bool:
    """Whether the pod has what its spec needs."""
    return not served(state) or (state.share.phase == "granted" and state.share.digest == state.digest)


def released(state: State) -> Iterator[Event]:
    """Nothing of the pod runs, nor will."""
    if state.share.phase != "none" and state.sandbox.phase in ("absent", "failed", "dead"):
        yield pod.CgroupReleased(pod=state.pod, uid=state.uid)


def retry_times(state: State) -> Iterator[int]:
    """When the same is asked once more."""
    if state.share.phase == "asked":
        yield state.share.asked_at + ASK_AGAIN_MS


def answered(state: State, message: QosReply, rejected: str) -> Sequence[Event]:
    """What an answer means. `rejected` is how the message of a pod begins that is not let in."""
    if isinstance(message, qos.PodRefused):
        said = f"{rejected}{message.message}"
        return (pod.PodFailed(pod=state.pod, uid=state.uid, reason=message.reason, message=said),)
    if isinstance(message, qos.HostPortsAwaited):
        if (state.share.phase, state.share.message) == ("awaited", message.message):
            return ()
        awaited = pod.HostPortsAwaited(pod=state.pod, uid=state.uid, holder=message.holder, message=message.message)
        return (awaited,)
    if state.share.phase == "granted" and state.share.parent == message.parent:
        return ()
    return (pod.CgroupGranted(pod=state.pod, uid=state.uid, parent=message.parent),)


def evolved(
    state: State, event: pod.CgroupRequested | pod.HostPortsAwaited | pod.CgroupGranted | pod.CgroupReleased
) -> NodeShare:
    """The share after one of its events."""
    match event:
        case pod.CgroupRequested():
            return NodeShare(phase="asked", digest=state.digest, asked_at=event.requested_at, parent=state.share.parent)
        case pod.HostPortsAwaited():
            return replace(state.share, phase="awaited", message=event.message)
        case pod.CgroupGranted():
            return NodeShare(phase="granted", digest=state.share.digest, parent=event.parent)
        case _:
            return NodeShare()
