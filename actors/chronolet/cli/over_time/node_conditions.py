"""Records what was wrong with the node when, and what happened to it. Pure.

Input: the states of the node's actors along the log, and their events. Output: `Condition`, in order of time. Next:
`node`, which prints them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from chronolet.image_gc.state import State as Images
from chronolet.keeper.state import State as Keeper
from chronolet.pleg.state import State as Pleg
from chronolet.qos.state import State as Qos
from chronolet_schemas import kernel, pleg
from chronolet_schemas.envelope import Event


class States(NamedTuple):
    """The states of the actors that know the node's conditions."""

    pleg: Pleg
    qos: Qos
    keeper: Keeper
    images: Images


class Condition(NamedTuple):
    """Something that was so from `begin` to `end`, in milliseconds since the epoch; `end` is None if it is so still.
    Both are the same for something that happened.
    """

    what: str
    detail: str
    begin: int
    end: int | None


class Recorder:
    """Conditions in the making. `states`: those at the moment `at`, where the record begins."""

    def __init__(self, states: States, at: int) -> None:
        self._states = states
        self._begin = at
        self._found: list[Condition] = []
        self._open: dict[str, Condition] = {}
        self._unfollowed: Condition | None = None
        """The open condition that the engine's events are not followed, which no state tells."""
        self._known = False
        """Whether an event has told if the engine's events are followed."""
        self._compare(dict(_conditions(states)), at)

    def take(self, states: States, event: Event | None, at: int) -> None:
        """Record the states after an entry, and what its event says; None if it says nothing about the node."""
        # States do not change in place, so most entries take no comparison.
        if any(one is not former for one, former in zip(states, self._states, strict=True)):
            self._states = states
            self._compare(dict(_conditions(states)), at)
        if event is not None:
            self._happened(event, at)

    def conditions(self) -> list[Condition]:
        """Return what was found so far, by beginning; in the order of the log for equal times."""
        still = (*self._open.values(), *((self._unfollowed,) if self._unfollowed is not None else ()))
        return sorted((*self._found, *still), key=lambda one: one.begin)

    def _compare(self, now: Mapping[str, str], at: int) -> None:
        """Close what is over, and open what is new; another detail begins anew."""
        for what in [one for one, known in self._open.items() if now.get(one) != known.detail]:
            self._found.append(self._open.pop(what)._replace(end=at))
        for what, detail in now.items():
            self._open.setdefault(what, Condition(what, detail, at, None))

    def _happened(self, event: Event, at: int) -> None:
        match event:
            case pleg.StreamLost():
                self._known = True
                self._unfollowed = self._unfollowed or Condition(_UNFOLLOWED, event.error, at, None)
            case pleg.StreamFollowed():
                if not (self._known or event.first):
                    self._unfollowed = Condition(_UNFOLLOWED, _EARLIER, self._begin, None)
                self._known = True
                if self._unfollowed is not None:
                    self._found.append(self._unfollowed._replace(end=at))
                    self._unfollowed = None
                if event.first:
                    self._note("agent follows the engine", event.server, at)
            case kernel.ClockJumped():
                self._note("clock jumped", f"by {event.by_milliseconds / 1000:+.3f} s", at)
            case kernel.HostRestarted():
                self._note("actor restarted", event.error, at)
            case kernel.LogLost():
                self._note("entries of the log lost", f"at least {event.entries}", at)
            case _:
                pass

    def _note(self, what: str, detail: str, at: int) -> None:
        self._found.append(Condition(what, detail, at, at))


_UNFOLLOWED = "engine's events not followed"
_EARLIER = "since before this time"


def _conditions(states: States) -> Iterator[tuple[str, str]]:
    """Yield what is wrong according to the states, with details."""
    observed, kills = states.pleg, states.pleg.probe_kills
    if kills.since:
        yield "probe kills held back", _short_of(kills.short_of)
    if observed.relist == "failing":
        yield "containers cannot be listed", "no listing succeeds for too long" if observed.unhealthy else ""
    if states.keeper.ballast_gone:
        yield "disk full", "the disk reserve is released"
    if states.keeper.problem:
        yield "archive", states.keeper.problem
    if states.qos.failing:
        cgroup, error = min(states.qos.failing.items())
        yield "cgroups fail", f"{len(states.qos.failing)}, such as {cgroup}: {error}"
    policy, reported = states.images.policy, states.images.reported
    if policy is not None and reported is not None and reported.usage_percent >= policy.high_threshold_percent:
        yield (
            "disk for images above the threshold",
            f"{reported.usage_percent} % after the last collection, threshold {policy.high_threshold_percent} %",
        )


def _short_of(resources: tuple[str, ...]) -> str:
    return f"the machine is short of {', '.join(resources)}" if resources else ""
