"""A pod's share of the node: when it is requested, granted and released. Pure.

Input: State, now; replies of `qos`. Output: `pod.CgroupRequested`, `pod.CgroupGranted`, `pod.CgroupReleased`,
`pod.HostPortsAwaited`, `pod.PodFailed`. Next: `admission`. Source: pkg/kubelet/kubelet.go (canAdmitPod, syncPod),
pkg/kubelet/cm.

    nothing -> asked -> awaited -> granted -> asked (its spec has changed)
                     -> granted
                                -> nothing (the pod is over, and nothing of it runs)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chronolet.pod.state import State
from chronolet.rules.resources.needs import needs
from chronolet_schemas import pod, qos
from chronolet_schemas.envelope import Event

KIND = "qos"
ASK_AGAIN_MS = 60_000
"""The interval between repeated requests without a reply."""

QosReply = qos.CgroupReady | qos.PodRefused | qos.HostPortsAwaited


def requests(state: State, now: int) -> Iterator[Event]:
    """The request for the spec's share of the node, if it was not sent yet or got no reply for too long."""
    if not served(state):
        return
    share = state.share
    if share.digest != state.digest or (share.phase == "asked" and now >= share.asked_at + ASK_AGAIN_MS):
        # A pod that runs without a request ran before the log began.
        running = share.phase == "none" and state.sandbox.phase == "running"
        yield pod.CgroupRequested(
            pod=state.pod, uid=state.uid, needs=needs(state.manifest.spec), running=running, requested_at=now
        )


def served(state: State) -> bool:
    """Whether the kind `qos` takes part in the pod's admission."""
    return state.admission is not None and KIND in state.admission


def granted(state: State) -> bool:
    """Whether the pod has what its spec needs."""
    return not served(state) or (state.share.phase == "granted" and state.share.digest == state.digest)


def released(state: State) -> Iterator[Event]:
    """Release the share once no sandbox runs, for a pod that will not run again."""
    if state.share.phase != "none" and state.sandbox.phase in ("absent", "failed", "dead"):
        yield pod.CgroupReleased(pod=state.pod, uid=state.uid)


def retry_times(state: State) -> Iterator[int]:
    """The time at which the request is repeated, if it is outstanding."""
    if state.share.phase == "asked":
        yield state.share.asked_at + ASK_AGAIN_MS


def answered(state: State, message: QosReply, rejected: str) -> Sequence[Event]:
    """The facts that follow from a reply. `rejected`: the prefix of the message of a rejected pod."""
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
