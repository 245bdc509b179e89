"""Records which container held which device when, and from whom it took the device over. Pure.

Input: the states of `devices` along the log, and its events. Output: `Tenure`, in order of device and time. Next:
`devices`, which prints them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chronolet.devices.state import State
from chronolet_schemas import devices
from chronolet_schemas.envelope import Event

_ENDS = {
    "Released": "released by the pod",
    "PodEnded": "the pod ended",
    "PodGone": "the pod was gone",
}
_OTHER_END = "given up"

Key = tuple[str, str, str]
"""A resource, a device of it, and the claim that holds it."""


class Holder(NamedTuple):
    """A container that holds a device; `pod` is namespace/name."""

    pod: str
    uid: str
    container: str


class Tenure(NamedTuple):
    """The time during which a container held a device, in milliseconds since the epoch.

    `end` is None if it holds the device still; `ended` says why it does not. `former` is the container that held the
    device before, and `former_end` when that one's tenure ended (None: it had not, as an init container passes its
    devices on); both are None if none is known.
    """

    resource: str
    device: str
    holder: Holder
    begin: int
    end: int | None = None
    ended: str = ""
    former: Holder | None = None
    former_end: int | None = None


class Recorder:
    """Tenures in the making. `state`: that of `devices` where they begin; those that have ended before are unknown."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._open: dict[Key, Tenure] = {}
        self._ended: list[Tenure] = []
        self._latest: dict[tuple[str, str], Tenure] = {}
        """The tenure of each device that ended last."""
        for key in sorted(_held(state)):
            claim = state.claims[key[2]]
            self._begin(key, state, claim.given_at.get(key[0], claim.since))

    def take(self, state: State, event: Event | None, at: int) -> None:
        """Record the state after an entry, whose event is None if it cannot be decoded."""
        if state.used is not self._state.used:
            before, after = set(_held(self._state)), set(_held(state))
            # A device that changes hands in one step is handed over, so ends come first.
            for key in sorted(before - after):
                self._finish(key, at, _why(event))
            for key in sorted(after - before):
                self._begin(key, state, at)
        self._state = state

    def tenures(self) -> list[Tenure]:
        """Return all tenures by resource, device and beginning, in the order of the log for equal times."""
        return sorted(
            (*self._ended, *self._open.values()), key=lambda one: (one.resource, one.device, one.begin, one.end is None)
        )

    def _begin(self, key: Key, state: State, at: int) -> None:
        resource, device, claim_key = key
        claim = state.claims[claim_key]
        former = self._former(resource, device)
        self._open[key] = Tenure(
            resource,
            device,
            Holder(claim.pod, claim.uid, claim.container),
            at,
            former=None if former is None else former.holder,
            former_end=None if former is None else former.end,
        )

    def _former(self, resource: str, device: str) -> Tenure | None:
        """Return the newest of the tenures that are open, as a device may be shared; else the one that ended last."""
        held = [one for key, one in self._open.items() if key[:2] == (resource, device)]
        return held[-1] if held else self._latest.get((resource, device))

    def _finish(self, key: Key, at: int, why: str) -> None:
        tenure = self._open.pop(key)._replace(end=at, ended=why)
        self._ended.append(tenure)
        self._latest[key[:2]] = tenure


def _held(state: State) -> Iterator[Key]:
    for resource, held in state.used.items():
        for device, claims in held.items():
            yield from ((resource, device, claim) for claim in claims)


def _why(event: Event | None) -> str:
    match event:
        case devices.DevicesFreed():
            return _ENDS.get(event.reason, _OTHER_END)
        case devices.DevicesRefused():
            return f"refused: {event.message or event.reason}"
        case _:
            return _OTHER_END
