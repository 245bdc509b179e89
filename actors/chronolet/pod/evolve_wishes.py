"""How the events of a pod's admission change its state.

Comes in: State, an event about admission or devices. Goes out: the next State. Next: `evolve`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from chronolet.pod.admission.node_share import evolved
from chronolet.pod.state import State, Wish
from chronolet_schemas import pod

_Answered = pod.DevicesAwaited | pod.DevicesGranted | pod.PreStartRequested | pod.PreStartAllowed
_Shared = pod.CgroupRequested | pod.HostPortsAwaited | pod.CgroupGranted | pod.CgroupReleased
WishEvent = pod.AdmissionBegan | pod.DevicesReleased | pod.DevicesRequested | _Answered | _Shared
"""What is told here."""


def evolve_wishes(state: State, event: WishEvent) -> State:
    """The state after one of these."""
    match event:
        case pod.AdmissionBegan():
            return replace(state, admission=event.kinds)
        case pod.DevicesReleased():
            return replace(state, wishes={n: one for n, one in state.wishes.items() if n not in event.containers})
        case pod.DevicesRequested():
            return _with(state, event.container, _asked(state.wishes.get(event.container), event))
        case pod.CgroupRequested() | pod.HostPortsAwaited() | pod.CgroupGranted() | pod.CgroupReleased():
            return replace(state, share=evolved(state, event))
        case _:
            return _changed(state, event.container, lambda one: _after(one, event))


def _asked(before: Wish | None, event: pod.DevicesRequested) -> Wish:
    """Who waits still waits: to be asked again is no news."""
    wish = before or Wish(wants={}, phase="asked")
    phase = "awaited" if wish.phase == "awaited" else "asked"
    return replace(wish, wants=event.resources, phase=phase, asked_at=event.requested_at, sandbox=event.sandbox)


def _after(one: Wish, event: _Answered) -> Wish:
    match event:
        case pod.DevicesAwaited():
            return replace(one, phase="awaited", reason=event.reason, message=event.message, asked_at=event.said_at)
        case pod.DevicesGranted():
            return replace(
                one,
                phase="granted",
                reason="",
                message="",
                held={},
                devices=event.devices,
                answer=event.answer,
                pre_start=event.pre_start,
            )
        case pod.PreStartRequested():
            return replace(one, telling=(event.attempt, event.failures), asked_at=event.requested_at)
        case pod.PreStartAllowed():
            return replace(one, telling=None, told=(event.attempt, event.failures))
        case _:
            assert_never(event)


def _changed(state: State, container: str, change: Callable[[Wish], Wish]) -> State:
    wish = state.wishes.get(container)
    return state if wish is None else _with(state, container, change(wish))


def _with(state: State, container: str, wish: Wish) -> State:
    return replace(state, wishes={**state.wishes, container: wish})
