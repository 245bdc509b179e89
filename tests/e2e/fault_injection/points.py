"""The points of a life at which a process can be killed, and which of them a short run takes. Pure.

Input: the names that a process announced, in order. Output: `Point`s that other lives of the same pod reach too.
Next: `faults.Striker` waits for one of them.

A step is announced with the types of all its events, and how many messages fall into one step differs from life to
life. So a point is told by one event type and how many of that type came before it, or by the outside call, its
entity and subject, and how often it was made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

_ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b")
"""Of a container, or a pod's uid."""
_OF_CREATIONS = re.compile(r" pod/\S+ (?:create/|sandbox\b|pod\.Sandbox|pod\.ContainerCreate)")


class Point(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """The `nth` time (from 1) that `place` is passed; in a step's place, with an event of `type`."""

    place: str
    """`step/before pod/2`, or `effect/after docker.start pod/default/web container/app`."""
    type: str = ""
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.place} {self.type} #{self.nth}".replace("  ", " ")

    @property
    def stratum(self) -> str:
        """What a sample has one of: before or after, and which event or which call about what."""
        where, what, *about = self.place.split()
        if self.type:
            return f"{where} {self.type}"
        return f"{where} {what} {about[0].partition('/')[0]} {_class(about[1] if len(about) > 1 else '')}"


def _class(subject: str) -> str:
    """`container` for `container/app` and for `container/web`: which container it is makes no kind of point."""
    return subject.partition("/")[0]


class Passed(msgspec.Struct, frozen=True):
    """One announcement."""

    place: str
    types: tuple[str, ...] = ()


def read(name: str) -> Passed:
    """An announcement as the kernel makes it; ids that differ from life to life are taken out."""
    plain = without_ids(name)
    if not plain.startswith("step/"):
        return Passed(plain)
    place, _, types = plain.rpartition(" ")
    return Passed(place, tuple(types.split("+")) if types else ())


class Counting:
    """How often each point was passed so far."""

    def __init__(self) -> None:
        self._passed: Counter[tuple[str, str]] = Counter()

    def points(self, name: str) -> list[Point]:
        """All points that this announcement is."""
        passed = read(name)
        found = []
        for type_ in passed.types or ("",):
            self._passed[passed.place, type_] += 1
            found.append(Point(place=passed.place, type=type_, nth=self._passed[passed.place, type_]))
        return found


def all_points(names: Sequence[str], told_by: str = "") -> list[Point]:
    """One point for each announcement of a life, by the event of it that is rarest in that life; a step with an event
    of the type `told_by` goes by that one.
    """
    counting = Counting()
    each = [counting.points(name) for name in names]
    often = Counter((point.place, point.type) for points in each for point in points)
    return [min(points, key=lambda one: (one.type != told_by, often[one.place, one.type], one)) for points in each]


def reached_by_all(lives: Iterable[Sequence[str]]) -> set[Point]:
    """The points that every one of these lives has passed."""
    sets = [{point for name in names for point in counting.points(name)} for names, counting in _counted(lives)]
    return set.intersection(*sets)


def _counted(lives: Iterable[Sequence[str]]) -> Iterator[tuple[Sequence[str], Counting]]:
    return ((names, Counting()) for names in lives)


def sample(points: Iterable[Point]) -> list[Point]:
    """One point of each stratum, the last one there is: a life has the most to lose late."""
    chosen: dict[str, Point] = {}
    for point in points:
        chosen[point.stratum] = point
    return list(chosen.values())


def sample_of_hooks(points: Iterable[Point]) -> list[Point]:
    """The first point of each stratum that is about a hook: `sample` has the last, and hooks come at both ends."""
    return sample(reversed([point for point in points if "hook" in str(point).lower()]))


def of_creations(names: Sequence[str]) -> list[Point]:
    """The first point of each stratum of a life that is about its sandbox, or about a container created ahead of its
    start: where a sandbox fails, these are of the one that fails. By whatever event of a step that is.
    """
    counting = Counting()
    each = [point for name in names for point in counting.points(name)]
    return sample(reversed([point for point in each if _OF_CREATIONS.search(str(point))]))


def without_ids(text: str) -> str:
    """What is the same in other lives."""
    return _ID.sub("ID", text)


def halved(points: Sequence[Point]) -> list[Point]:
    """Of each event type or outside call one point only, before it and after it by turns."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.type or point.place.split()[1], []).append(point)
    return [some[number % len(some)] for number, some in enumerate(found.values())]
