"""What a person wants to know of two runs: what happened in each, side by side, and how often. Pure.

Input: `Step`s in any order. Output: `Row`s in order, `Count`s. Next: `cli.replay.whatif`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from chronolet.history.whatif.change import Certainty, Step
from chronolet_schemas import container_gc, image_gc, pod, prober
from chronolet_schemas.envelope import Event, Position

_FAILED = ("LivenessFailed", "StartupFailed")
_DEAD = "dead containers"


class Happening(NamedTuple):
    """Something that is worth a line. `counts`: what it is counted as, in the plural; empty if it is not counted."""

    subject: str
    text: str
    counts: str = ""
    amount: int = 1


class Row(NamedTuple):
    """One line: what happened, what happens with the change; either may be empty. `at` is in milliseconds."""

    at: int
    position: Position | None
    subject: str
    recorded: str
    changed: str
    certainty: Certainty


class Count(NamedTuple):
    """How often something happened in each run. `what` is in the plural."""

    subject: str
    what: str
    recorded: int
    changed: int


class Result:
    """Collects steps."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._counts: Counter[tuple[str, str, bool]] = Counter()

    def add(self, step: Step) -> None:
        """Add a step of both runs."""
        recorded = [one for event in step.recorded if (one := happening(event)) is not None]
        changed = [one for event in step.changed if (one := happening(event)) is not None]
        for number, found in enumerate((recorded, changed)):
            for one in found:
                if one.counts:
                    self._counts[one.subject, one.counts, bool(number)] += one.amount
        self._rows += _rows(step, recorded, changed)

    def rows(self) -> list[Row]:
        """Return all lines in the order of time."""
        return sorted(_joined(sorted(self._rows, key=lambda one: one.at)), key=lambda one: one.at)

    def counts(self) -> list[Count]:
        """Return what was counted, by subject."""
        names = sorted({(subject, what) for subject, what, _ in self._counts})
        return [
            Count(subject, what, self._counts[subject, what, False], self._counts[subject, what, True])
            for subject, what in names
        ]


def _rows(step: Step, recorded: list[Happening], changed: list[Happening]) -> Iterator[Row]:
    rest = list(changed)
    for one in recorded:
        same = next((each for each in rest if (each.subject, each.text) == (one.subject, one.text)), None)
        if same is not None:
            rest.remove(same)
        yield Row(step.at, step.position, one.subject, one.text, same.text if same else "", step.certainty)
    for one in rest:
        yield Row(step.at, step.position, one.subject, "", one.text, step.certainty)


def _joined(rows: Iterable[Row]) -> Iterator[Row]:
    """Join two lines about the same at one moment, of which each belongs to one run only."""
    waiting: list[Row] = []
    for row in rows:
        if waiting and waiting[0].at != row.at:
            yield from waiting
            waiting = []
        other = next((number for number, one in enumerate(waiting) if _fit(one, row)), None)
        if other is None:
            waiting.append(row)
        else:
            waiting[other] = _one_line(waiting[other], row)
    yield from waiting


def _fit(one: Row, other: Row) -> bool:
    """Whether two lines are about the same in different runs: their texts begin with the same word."""
    same = (one.subject, one.certainty) == (other.subject, other.certainty)
    if not same or bool(one.recorded) == bool(other.recorded) or bool(one.changed) == bool(other.changed):
        return False
    return (one.recorded or one.changed).split(" ")[0] == (other.recorded or other.changed).split(" ")[0]


def _one_line(one: Row, other: Row) -> Row:
    return one._replace(
        position=one.position or other.position,
        recorded=one.recorded or other.recorded,
        changed=one.changed or other.changed,
    )


def happening(event: Event) -> Happening | None:
    """Return what an event means to a person; None if it is a detail."""
    match event:
        case pod.ContainerEvent():
            return _of_container(event)
        case prober.ProbeCounted():
            outcome = "failed" if isinstance(event, prober.ProbeFailed) else "succeeded"
            name = f"pod/{event.pod}/{event.container}"
            return Happening(name, f"{event.probe} probe {outcome}, {event.consecutive} of {event.threshold}")
        case image_gc.RunEvent():
            return _of_images(event)
        case container_gc.RunEvent():
            return _of_dead(event)
        case _:
            return None


def _of_container(event: pod.ContainerEvent) -> Happening | None:
    name = f"pod/{event.pod}/{event.container}"
    match event:
        case pod.ContainerStopRequested():
            counts = "stops for a failed probe" if event.reason in _FAILED else "other stops"
            return Happening(name, f"stopped: {event.reason}, grace period {event.grace_period_seconds} s", counts)
        case pod.RestartScheduled():
            after = f"after a back-off of {event.back_off_seconds} s" if event.back_off_seconds else "immediately"
            return Happening(name, f"restart {after}, the next after {event.next_back_off_seconds} s")
        case pod.ContainerStarted():
            return Happening(name, f"started (attempt {event.attempt})", "restarts" if event.attempt else "")
        case pod.ContainerProbed(probe="Readiness"):
            ready = event.result == "success"
            return Happening(name, "ready" if ready else "not ready", "" if ready else "times not ready")
        case _:
            return None


def _of_images(event: image_gc.RunEvent) -> Happening | None:
    match event:
        case image_gc.RunStarted():
            wanted = "all unused" if event.wanted_bytes is None else f"{event.wanted_bytes} bytes"
            names = ", ".join(one.name for one in event.candidates)
            return Happening("images", f"run: free {wanted}, from {names}")
        case image_gc.RunFinished(removed=0, failed=0):
            return Happening("images", f"run: nothing to remove, disk {event.usage_percent} % full")
        case image_gc.ImageRemoved():
            return Happening("images", f"removed {event.name} ({event.reason})", "images removed")
        case image_gc.ImageNotRemoved():
            return Happening("images", f"not removed: {event.name}", "removals refused")
        case _:
            return None


def _of_dead(event: container_gc.RunEvent) -> Happening | None:
    match event:
        case container_gc.RunStarted():
            return Happening(_DEAD, f"run: remove {', '.join(one.name for one in event.victims)}")
        case container_gc.RunFinished(removed=0, failed=0):
            return Happening(_DEAD, "run: nothing to remove")
        case container_gc.Removed():
            what = event.what.replace("_", " ")
            return Happening(_DEAD, f"removed {what} {event.name} ({event.rule})", f"{what}s removed")
        case container_gc.NotRemoved():
            return Happening(_DEAD, f"not removed: {event.name}", "removals refused")
        case _:
            return None
