"""Counts how much the node did, and how late it was, in parts of the time. Pure.

Input: entries with their times, events about delays. Output: `Part`, in order of time. Next: `node`, which prints them.

The lag of an entry is the time since the event that it reacts to: how long it took until that event was read, decided
on, and the decision committed. The cause of an entry alone does not tell it: the cause of a container's death, for
example, is the event that created the container. So only `REACTIONS` count.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from chronolet_schemas import image_gc, pleg, prober
from chronolet_schemas.envelope import Entry, Event, Position

TYPES = (
    "prober.ProbeDelayed",
    "prober.ProbeUnjudged",
    "pleg.ProbeTroubleNoted",
    "pleg.ProbeKillsHeldBack",
    "image_gc.RunStarted",
    "image_gc.RunFinished",
)
"""The types of the events that `take` needs decoded, without versions."""
REACTIONS = frozenset(
    {
        ("devices.DevicesAllocated", "pod.DevicesGranted"),
        ("manifests.PodApplied", "pod.SpecAccepted"),
        ("manifests.PodWithdrawn", "pod.TerminationRequested"),
        ("pleg.ContainerDied", "pod.ContainerExited"),
        ("pleg.ContainerDied", "pod.SandboxExited"),
        ("pleg.ContainerStarted", "pod.ContainerStarted"),
        ("pod.CgroupReleased", "qos.PodReleased"),
        ("pod.CgroupRequested", "qos.PodAdmitted"),
        ("pod.DevicesReleased", "devices.DevicesFreed"),
        ("pod.PodEnded", "container_gc.PodForgotten"),
        ("pod.ProbingWithdrawn", "prober.ProbeRemoved"),
        ("pod.SpecAccepted", "container_gc.PodNoted"),
        ("prober.ResultChanged", "pod.ContainerProbed"),
        ("qos.CgroupReady", "pod.CgroupGranted"),
    }
)
"""The types of causes and entries, without versions, where an actor writes the entry once it has read the cause."""
_CAUSES = frozenset(cause for cause, _ in REACTIONS)
_RECENT = 20_000
"""The number of possible causes among which the cause of an entry is looked for."""


@dataclass(slots=True)
class Part:
    """A part of the time: its bounds in milliseconds since the epoch, and what happened in it. The other times are the
    longest ones in milliseconds; `disk_percent`: the usage of the images' disk, as last read; None if it was not read.
    """

    begin: int
    end: int
    entries: int = 0
    starts: int = 0
    lag_milliseconds: int = 0
    probe_delay_milliseconds: int = 0
    unjudged_probes: int = 0
    short_of: set[str] = field(default_factory=set)
    disk_percent: int | None = None


class Recorder:
    """Parts of the time from `begin` to `end`, each `step` milliseconds long. The first one begins at a multiple of
    `step`.
    """

    def __init__(self, begin: int, end: int, step: int) -> None:
        self._begin = begin // step * step
        self._step = step
        count = max(-(-(end + 1 - self._begin) // step), 1)
        self.parts = [Part(at, at + step) for at in range(self._begin, self._begin + count * step, step)]
        self._types: OrderedDict[int, str] = OrderedDict()
        """The types of recent entries that may be causes, by number."""

    def take(self, entry: Entry, event: Callable[[], Event | None], at: int) -> None:
        """Count an entry. `event` decodes it."""
        part = self.parts[min(max((at - self._begin) // self._step, 0), len(self.parts) - 1)]
        part.entries += 1
        name = entry.type.partition("@")[0]
        part.lag_milliseconds = max(part.lag_milliseconds, self._lag(entry, name))
        if name == "pod.ContainerStarted":
            part.starts += 1
        elif name in TYPES and (known := event()) is not None:
            _add(part, known)

    def _lag(self, entry: Entry, name: str) -> int:
        if name in _CAUSES:
            self._types[entry.position.n] = name
            if len(self._types) > _RECENT:
                self._types.popitem(last=False)
        try:
            cause = Position.parse(entry.cause)
        except ValueError:
            return 0  # the request id of a command, or empty
        if (self._types.get(cause.n), name) not in REACTIONS:
            return 0
        return max(entry.position.milliseconds - cause.milliseconds, 0)


def _add(part: Part, event: Event) -> None:
    match event:
        case prober.ProbeDelayed():
            part.probe_delay_milliseconds = max(part.probe_delay_milliseconds, event.late_milliseconds)
        case prober.ProbeUnjudged():
            part.unjudged_probes += 1
            part.short_of.update(event.short_of)
        case pleg.ProbeTroubleNoted() | pleg.ProbeKillsHeldBack():
            part.short_of.update(event.short_of)
        case image_gc.RunStarted() | image_gc.RunFinished() if event.capacity_bytes:
            part.disk_percent = event.usage_percent
        case _:
            pass
