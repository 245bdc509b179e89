"""Notify plugins before a container with their devices starts: PreStartContainer. Pure.

Input: Context, `pod.PreStartRequested`, the plugins' answer. Output: the events that follow. Next: `lifecycle`. Source:
pkg/kubelet/cm/devicemanager/manager.go (callPreStartContainerIfNeeded).

    phase      message or time        event, next phase
    idle       pod.PreStartRequested  PreStartDone -> idle        (no plugin requires it)
    idle       pod.PreStartRequested  PreStartFailed -> idle      (a plugin that requires it is unavailable)
    idle       pod.PreStartRequested  PreStartAsked -> notifying
    notifying  pod.PreStartRequested  PreStartFailed -> idle      (another attempt; a plugin is unavailable)
    notifying  pod.PreStartRequested  PreStartAsked -> notifying  (another attempt)
    notifying  PreStartAnswered       PreStartDone -> idle
    notifying  PreStartAnswered       PreStartFailed -> idle      (a plugin rejects the start)

`Claim.starting` is the attempt while the phase is `notifying`, else None. These phases are independent of the claim's.
"""

from __future__ import annotations

from collections.abc import Sequence

from chronolet.devices import signals
from chronolet.devices.claims import questions
from chronolet.devices.context import Context
from chronolet.devices.state import State
from chronolet.rules.refs import AttemptRef
from chronolet_schemas import devices, pod


def requested(context: Context, message: pod.PreStartRequested) -> Sequence[devices.ClaimEvent]:
    """Request the PreStartContainer calls for an attempt that is about to start: done immediately if no plugin requires
    the call, failed if a plugin that does is not registered. Returns no event if the container has no claim, or if the
    calls for this attempt are already in progress.
    """
    claim = context.state.claim(message.uid, message.container)
    if claim is None or claim.starting == message.attempt:
        return ()
    ref = AttemptRef(pod=message.pod, uid=message.uid, container=message.container, attempt=message.attempt)
    requiring = [name for name, one in sorted(claim.held.items()) if one.pre_start]
    if not requiring:
        return (devices.PreStartDone(**ref),)
    away = [name for name in requiring if not context.state.has_plugin(name)]
    if away:
        missing = f"endpoint not found in cache for a registered resource: {away[0]}"
        return (devices.PreStartFailed(**ref, message=missing),)
    return (devices.PreStartAsked(**ref),)


def answered(state: State, message: signals.PreStartAnswered) -> Sequence[devices.ClaimEvent]:
    """Report whether the container may start. Returns no event if the plugins are no longer being notified of this
    start.
    """
    claim = questions.starting(state, message)
    if claim is None or claim.starting is None:
        return ()
    ref = AttemptRef(pod=claim.pod, uid=claim.uid, container=claim.container, attempt=claim.starting)
    if message.error:
        error = f"device plugin PreStartContainer rpc failed with err: {message.error}"
        return (devices.PreStartFailed(**ref, message=error),)
    return (devices.PreStartDone(**ref),)
