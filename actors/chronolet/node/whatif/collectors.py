"""Estimates what the collectors of images and of dead containers do after they begin to remove other objects than
recorded. Pure.

Input: a collector's states when the difference begins, later decisions of the record. Output: `Step`s. Next:
`history.whatif.two_runs`.

The rules, which docs/commands.md explains to users:

* Each removal succeeds at once.
* What only the changed run has removed is missing in later scans; what only the record has removed is still there, as
  it was last seen. The free space of the disk changes by the sizes of these images.
* A scan in the middle of a run finds what the last recorded one found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from chronolet.container_gc import decider as container_decider
from chronolet.container_gc import signals as container_signals
from chronolet.container_gc import wanted as container_wanted
from chronolet.history.recorded_decisions import Recorded
from chronolet.history.whatif.change import Both, Step
from chronolet.image_gc import decider as image_decider
from chronolet.image_gc import signals as image_signals
from chronolet.image_gc import wanted as image_wanted
from chronolet.kernel.decider import Decider, EffectFailed
from chronolet_schemas import container_gc, image_gc
from chronolet_schemas.envelope import Event, Message


class _Estimate(ABC):
    """What both collectors have in common. See `history.whatif.change.Estimating`."""

    def __init__(self, kind: str, decider: Decider[Any], both: Both, at: int) -> None:
        self._kind = kind
        self._decider = decider
        self._state = both.changed
        self._at = at
        self._begun = False

    def add(self, one: Recorded) -> Iterator[Step]:
        now = one.made.now if one.made is not None else one.first.position.milliseconds
        yield from self._catch_up()
        changed = tuple(self._decided(one, now))
        yield Step(now, one.first.position, (self._kind, one.key), tuple(one.events), changed, "estimate")
        yield from self._more(now)

    def end(self, _at: int) -> Iterator[Step]:
        yield from self._catch_up()

    def unknown(self) -> Iterable[str]:
        return ()

    def _catch_up(self) -> Iterator[Step]:
        """Carry out what was requested when the difference began."""
        if not self._begun:
            self._begun = True
            yield from self._more(self._at)

    def _more(self, now: int) -> Iterator[Step]:
        """Carry out what is requested, until nothing is."""
        while (message := self._answer()) is not None:
            events = tuple(self._handle(message, now))
            if not events:
                return
            yield Step(now, None, (self._kind, "node"), (), events, "estimate")

    def _handle(self, message: Message, now: int) -> Iterator[Event]:
        for event in self._decider.decide(self._state, message, now):
            self._state = self._decider.evolve(self._state, event)
            self._noted(event)
            yield event

    def _decided(self, one: Recorded, now: int) -> Iterator[Event]:
        for event in one.events:
            self._recorded(event)
        if one.made is not None:
            message = self._seen(one.made.message)
            if message is not None:
                yield from self._handle(message, now)

    @abstractmethod
    def _answer(self) -> Message | None:
        """Return the result of an effect that is outstanding; None if there is none, or if nothing is known of it."""

    @abstractmethod
    def _seen(self, message: Message) -> Message | None:
        """Return a recorded message as it is with the change; None if it does not arrive."""

    @abstractmethod
    def _noted(self, event: Event) -> None:
        """Take note of an event of the changed run."""

    @abstractmethod
    def _recorded(self, event: Event) -> None:
        """Take note of an event of the record."""


class ImagesEstimate(_Estimate):
    """The estimate for images."""

    def __init__(
        self,
        both: Both,
        at: int,
        last: image_signals.Looked | None,
        changed: Callable[[image_signals.Looked], image_signals.Looked],
    ) -> None:
        """`last`: the last recorded scan with the disk usage. `changed`: returns a scan with the changed settings."""
        super().__init__("image_gc", image_decider.DECIDER, both, at)
        self._changed = changed
        self._gone: dict[str, int] = {}
        """The sizes of the images that only the changed run has removed, in bytes, by id."""
        self._left: dict[str, image_gc.Image] = {}
        """The images that only the record has removed."""
        self._last = last
        mine = {} if both.changed is None else both.changed.records
        theirs = {} if both.recorded is None else both.recorded.records
        self._gone |= {name: one.image.size_bytes for name, one in theirs.items() if name not in mine}
        self._left |= {name: one.image for name, one in mine.items() if name not in theirs}

    def _answer(self) -> Message | None:
        for effect in self._decider.outstanding(self._state):
            if isinstance(effect, image_wanted.RemoveImage):
                return image_signals.RemovalDone(subject=effect.subject, intent=effect.intent)
            if isinstance(effect, image_wanted.Look) and effect.intent.startswith("read/") and self._last is not None:
                return self._with_difference(replace(self._last, intent=effect.intent, subject=effect.subject))
        return None

    def _seen(self, message: Message) -> Message | None:
        if isinstance(message, image_signals.RemovalDone | image_signals.RemovalRefused) or _is_of_run(message):
            return None
        if not isinstance(message, image_signals.Looked):
            return message
        if message.intent.startswith("read/"):
            return None
        if message.disk is not None:
            self._last = message
        return self._with_difference(message)

    def _with_difference(self, scan: image_signals.Looked) -> image_signals.Looked:
        if scan.error:
            return self._changed(scan)
        present = {one.id for one in scan.images}
        back = [one for name, one in self._left.items() if name not in present]
        images = (*(one for one in scan.images if one.id not in self._gone), *back)
        disk = scan.disk
        if disk is not None:
            freed = sum(self._gone.values()) - sum(one.size_bytes for one in back)
            disk = replace(disk, available_bytes=min(max(disk.available_bytes + freed, 0), disk.capacity_bytes))
        return self._changed(replace(scan, images=images, disk=disk))

    def _noted(self, event: Event) -> None:
        if isinstance(event, image_gc.ImageRemoved) and self._left.pop(event.id, None) is None:
            self._gone[event.id] = event.size_bytes

    def _recorded(self, event: Event) -> None:
        if isinstance(event, image_gc.ImageRemoved):
            self._disappeared(event.id)
        elif isinstance(event, image_gc.ImagesChanged):
            for name in event.gone:  # somebody else removed it, in both runs
                self._gone.pop(name, None)
                self._left.pop(name, None)

    def _disappeared(self, name: str) -> None:
        if self._gone.pop(name, None) is None and name in self._state.records:
            self._left[name] = self._state.records[name].image


class ContainersEstimate(_Estimate):
    """The estimate for dead containers, sandboxes and logs."""

    def __init__(
        self,
        both: Both,
        at: int,
        last: container_signals.Looked | None,
        changed: Callable[[container_gc.Policy], container_gc.Policy],
    ) -> None:
        """`last`: the last recorded scan. `changed`: returns a policy with the changed settings."""
        super().__init__("container_gc", container_decider.DECIDER, both, at)
        self._changed = changed
        self._gone: set[tuple[str, str]] = set()
        """What only the changed run has removed: what it is, and its id or name."""
        self._left: dict[tuple[str, str], Any] = {}
        """What only the record has removed, as last seen."""
        self._known: dict[tuple[str, str], Any] = {} if last is None else _objects(last)
        self._unseen: set[tuple[str, str]] = set()

    def unknown(self) -> Iterable[str]:
        if self._unseen:
            objects = "1 object was" if len(self._unseen) == 1 else f"{len(self._unseen)} objects were"
            yield f"what {objects} like, removed only in the record: no scan shows more"

    def _answer(self) -> Message | None:
        for effect in self._decider.outstanding(self._state):
            if isinstance(effect, container_wanted.Remove):
                return container_signals.RemovalDone(subject=effect.subject, intent=effect.intent)
        return None

    def _seen(self, message: Message) -> Message | None:
        if isinstance(message, container_signals.RemovalDone | container_signals.RemovalRefused) or _is_of_run(message):
            return None
        if not isinstance(message, container_signals.Looked):
            return message
        self._known = {**self._known, **_objects(message)}
        present = _objects(message)
        objects = {key: one for key, one in present.items() if key not in self._gone}
        objects |= {key: one for key, one in self._left.items() if key not in present}
        return replace(
            message,
            policy=self._changed(message.policy),
            containers=_of(objects, "container"),
            sandboxes=_of(objects, "sandbox"),
            log_folders=_of(objects, "log_folder"),
            log_links=_of(objects, "log_link"),
        )

    def _noted(self, event: Event) -> None:
        if isinstance(event, container_gc.Removed) and self._left.pop(_key(event), None) is None:
            self._gone.add(_key(event))

    def _recorded(self, event: Event) -> None:
        if not isinstance(event, container_gc.Removed):
            return
        key = _key(event)
        if key in self._gone:
            self._gone.discard(key)
        elif key in self._known:
            self._left[key] = self._known[key]
        else:
            self._unseen.add(key)


def _is_of_run(message: Message) -> bool:
    """Whether the message is the failure of an effect in the middle of a recorded run, not of the scan before one."""
    return isinstance(message, EffectFailed) and not message.intent.startswith("look/")


def _key(event: container_gc.Removed) -> tuple[str, str]:
    return event.what, event.id or event.name


def _objects(scan: container_signals.Looked) -> dict[tuple[str, str], Any]:
    return {
        **{("container", one.id): one for one in scan.containers},
        **{("sandbox", one.id): one for one in scan.sandboxes},
        **{("log_folder", one.name): one for one in scan.log_folders},
        **{("log_link", one.name): one for one in scan.log_links},
    }


def _of(objects: dict[tuple[str, str], Any], what: str) -> tuple[Any, ...]:
    return tuple(one for (kind, _), one in objects.items() if kind == what)
