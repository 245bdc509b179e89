"""The crash points of a run at which a process can be killed, and samples of them for short runs. Pure.

Input: the names that a process announced, in order. Output: `Point`s that other runs of the same pod reach, too. Next:
`faults.Killer` waits for one of them.

A step is announced with the types of all its events, and the number of messages in one step differs from run to run. So
a step's point is identified by one event type and the number of events of that type so far; the point of an outside
call, by the call, its entity and subject, and how many times it has been made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

_ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b")
"""Matches a container's id or a pod's uid."""
_OF_CREATIONS = re.compile(r" pod/\S+ (?:create/|sandbox\b|pod\.Sandbox|pod\.ContainerCreate)")


class Point(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The `nth` time (from 1) that `place` is passed; for a step, with an event of `type`."""

    place: str
    """For example `step/before pod/2`, or `effect/after docker.start pod/default/web container/app`."""
    type: str = ""
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.place} {self.type} #{self.nth}".replace("  ", " ")

    @property
    def stratum(self) -> str:
        """The class from which a sample takes one point: before or after, and which event, or which call about what."""
        where, what, *about = self.place.split()
        if self.type:
            return f"{where} {self.type}"
        return f"{where} {what} {about[0].partition('/')[0]} {_class(about[1] if len(about) > 1 else '')}"


def _class(subject: str) -> str:
    """Return `container` for both `container/app` and `container/web`: points of different containers share a class."""
    return subject.partition("/")[0]


class Announcement(msgspec.Struct, frozen=True):
    """One announcement by the kernel: the place that was reached, and for a step the types of its events."""

    place: str
    types: tuple[str, ...] = ()


def read(name: str) -> Announcement:
    """Parse an announcement by the kernel; ids that differ from run to run are replaced."""
    plain = without_ids(name)
    if not plain.startswith("step/"):
        return Announcement(plain)
    place, _, types = plain.rpartition(" ")
    return Announcement(place, tuple(types.split("+")) if types else ())


class PointCounter:
    """Counts how often each point has been passed so far."""

    def __init__(self) -> None:
        self._passed: Counter[tuple[str, str]] = Counter()

    def points(self, name: str) -> list[Point]:
        """Return all points that this announcement passes."""
        passed = read(name)
        found = []
        for type_ in passed.types or ("",):
            self._passed[passed.place, type_] += 1
            found.append(Point(place=passed.place, type=type_, nth=self._passed[passed.place, type_]))
        return found


def all_points(names: Sequence[str], identified_by: str = "") -> list[Point]:
    """Return one point per announcement of a run. A step with several events is identified by the event type that is
    rarest in the run, or by `identified_by` if it has an event of that type.
    """
    counter = PointCounter()
    each = [counter.points(name) for name in names]
    often = Counter((point.place, point.type) for points in each for point in points)
    return [
        min(points, key=lambda one: (one.type != identified_by, often[one.place, one.type], one)) for points in each
    ]


def reached_by_all(runs: Iterable[Sequence[str]]) -> set[Point]:
    """Return the points that all of these runs have passed."""
    sets = [{point for name in names for point in counter.points(name)} for names, counter in _with_counters(runs)]
    return set.intersection(*sets)


def _with_counters(runs: Iterable[Sequence[str]]) -> Iterator[tuple[Sequence[str], PointCounter]]:
    return ((names, PointCounter()) for names in runs)


def sample(points: Iterable[Point]) -> list[Point]:
    """Return the last point of each stratum: late in a run there is most to lose."""
    chosen: dict[str, Point] = {}
    for point in points:
        chosen[point.stratum] = point
    return list(chosen.values())


def sample_of_hooks(points: Iterable[Point]) -> list[Point]:
    """Return the first point of each stratum that is about a hook: `sample` returns the last, and hooks run both at the
    beginning and at the end of a run.
    """
    return sample(reversed([point for point in points if "hook" in str(point).lower()]))


def of_creations(names: Sequence[str]) -> list[Point]:
    """Of the points about the sandbox or about a container created ahead of its start, return the first in each
    stratum. A step gives one point for each of its event types. If a sandbox fails, these points concern the failing
    one.
    """
    counter = PointCounter()
    each = [point for name in names for point in counter.points(name)]
    return sample(reversed([point for point in each if _OF_CREATIONS.search(str(point))]))


def without_ids(text: str) -> str:
    """Return the text with ids replaced, so that it is equal in all runs."""
    return _ID.sub("ID", text)


def halved(points: Sequence[Point]) -> list[Point]:
    """Return one point for each event type or outside call, alternately before and after it."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.type or point.place.split()[1], []).append(point)
    return [some[number % len(some)] for number, some in enumerate(found.values())]
