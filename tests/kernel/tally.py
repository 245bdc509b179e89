"""A test kind that counts: each `Add` leads to one `Added` with a running count and checksum.

Every tenth addition requests an effect, which writes a line to a file; every addition with `rest_after` arms a timer.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from chronolet.kernel.kind import Decider, Due, Effect, EffectContext, EffectFailed, Job, Kind
from chronolet_schemas.envelope import Command, Event, Signal
from chronolet_schemas.registry import registered


@registered
class Add(Command, frozen=True, kw_only=True):
    key: str
    number: int
    rest_after: int = 0
    poison: bool = False


@registered
class Added(Event, frozen=True, kw_only=True):
    key: str
    number: int
    count: int
    checksum: int
    """Checksum of all numbers so far. It depends on their order."""
    rest_at: int = 0


@registered
class NoteRequested(Event, frozen=True, kw_only=True):
    count: int


@registered
class NoteTaken(Event, frozen=True, kw_only=True):
    count: int


@registered
class Rested(Event, frozen=True, kw_only=True):
    count: int


class Tally(msgspec.Struct, frozen=True):
    count: int = 0
    checksum: int = 0
    note: int = 0
    rest_at: int = 0


class TakeNote(Effect, frozen=True, kw_only=True):
    key: str
    count: int


class TookNote(Signal, frozen=True, kw_only=True):
    subject: str
    intent: str
    count: int


def chained(checksum: int, number: int) -> int:
    """Return the checksum after one more number."""
    return zlib.crc32(number.to_bytes(8, "big"), checksum)


def decide(state: Tally, message: object, now: int) -> Sequence[Event]:
    match message:
        case Add(poison=True):
            raise ValueError("poison")
        case Add():
            count = state.count + 1
            rest_at = now + message.rest_after if message.rest_after else 0
            added = Added(
                key=message.key,
                number=message.number,
                count=count,
                checksum=chained(state.checksum, message.number),
                rest_at=rest_at,
            )
            return (added, NoteRequested(count=count)) if count % 10 == 0 else (added,)
        case TookNote() if state.note == message.count:
            return (NoteTaken(count=message.count),)
        case Due():
            return (Rested(count=state.count),)
        case EffectFailed():
            return ()
    return ()


def evolve(state: Tally, event: Event) -> Tally:
    match event:
        case Added():
            return msgspec.structs.replace(state, count=event.count, checksum=event.checksum, rest_at=event.rest_at)
        case NoteRequested():
            return msgspec.structs.replace(state, note=event.count)
        case NoteTaken():
            return msgspec.structs.replace(state, note=0)
        case Rested():
            return msgspec.structs.replace(state, rest_at=0)
    return state


def outstanding(state: Tally) -> Sequence[Effect]:
    return (TakeNote(subject="note", intent=f"note/{state.note}", key="", count=state.note),) if state.note else ()


DECIDER: Decider[Tally] = Decider(
    initial=Tally(), decide=decide, evolve=evolve, due=lambda state: state.rest_at or None, outstanding=outstanding
)


def note_taker(folder: Path) -> Job:
    """Return a job that appends one line per note to a file named after the entity."""

    def run(effect: TakeNote, context: EffectContext) -> Signal:
        context.fence("note")
        with (folder / context.entity).open("a") as file:
            file.write(f"{effect.count}\n")
        context.done("note")
        return TookNote(subject=effect.subject, intent=effect.intent, count=effect.count)

    return Job(run, timeout_seconds=5.0)


def kind(shards: int, notes: Path | None = None) -> Kind[Tally]:
    return Kind(
        name="tally",
        shards=shards,
        state=Tally,
        format=1,
        decider=DECIDER,
        signals=frozenset((TookNote,)),
        commands={Add: lambda add: (add.key,)},
        effects={TakeNote: note_taker(notes)} if notes else {},
    )
