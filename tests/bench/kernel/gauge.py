"""Kinds for the benchmark: events of a typical size, and deciders so small that the kernel dominates the measurement.

`gauge` writes typical events, `ear` receives them in another process and records the time, `job` runs one effect per
command. Other deciders must not read the clock; here that time is the measurement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import msgspec

from chronolet.kernel.kind import Decider, Effect, EffectContext, Job, Kind
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Command, Event, Record, Signal
from chronolet_schemas.registry import registered

SHARDS = {"gauge": 1, "ear": 1, "job": 1}
ENTITIES = 330


class Typical(Event, frozen=True, kw_only=True):
    """An event with twelve fields, about as large as a container's event."""

    pod: str
    uid: str
    container: str
    attempt: int
    id: str
    image: str
    reason: str
    exit_code: int
    started_at: int
    finished_at: int
    requested_at: int
    ready: bool


@registered
class Measured(Typical, frozen=True, kw_only=True):
    """The event that `gauge` writes."""

    def subject(self) -> str:
        return "container/app"


@registered
class Started(Typical, frozen=True, kw_only=True):
    """The intent that `job` records for a command."""


@registered
class Finished(Event, frozen=True, kw_only=True):
    """The job's effect has finished; the job's entity is removed."""

    number: int


@registered
class Heard(Event, frozen=True, kw_only=True):
    """`ear` received an event at this time of the machine's monotonic clock."""

    at_microseconds: int


@registered
class Run(Command, frozen=True, kw_only=True):
    """A command that runs one job."""

    number: int


def typical(number: int) -> dict[str, object]:
    """Return the twelve fields of event N."""
    return {
        "pod": f"default/web-{number % ENTITIES}",
        "uid": f"{number:08x}-4b1c-4d7e-9a53-0242ac110002",
        "container": "app",
        "attempt": number % 7,
        "id": f"{number:032x}",
        "image": "registry/web:1.25",
        "reason": "Completed",
        "exit_code": 137,
        "started_at": 1_763_680_000_000 + number,
        "finished_at": 1_763_680_060_000 + number,
        "requested_at": 1_763_679_990_000 + number,
        "ready": True,
    }


def measured(number: int) -> Measured:
    return msgspec.convert(typical(number), Measured)


def record(event: Measured, number: int, actor: str) -> Record:
    """Convert the event to a record of the log."""
    return Record(
        registry.type_of(Measured),
        f"gauge/{event.pod}",
        event.subject(),
        actor,
        f"{event.started_at}-{number}",
        codec.encode(event),
    )


class Reading(msgspec.Struct, frozen=True):
    """State of a gauge: four fields of its last event."""

    attempt: int = 0
    id: str = ""
    exit_code: int = 0
    finished_at: int = 0


def _read(state: Reading, event: Event) -> Reading:
    if isinstance(event, Measured):
        return Reading(event.attempt, event.id, event.exit_code, event.finished_at)
    return state


class Ear(msgspec.Struct, frozen=True):
    """The empty state of `ear`."""


def _hear(_state: Ear, message: object, _now: int) -> Sequence[Event]:
    at = time.monotonic_ns() // 1000
    return (Heard(at_microseconds=at),) if isinstance(message, Measured) else ()


class Work(msgspec.Struct, frozen=True):
    """State of a job: its number, or None before the job was started."""

    number: int | None = None


class DoWork(Effect, frozen=True, kw_only=True):
    number: int


class Worked(Signal, frozen=True, kw_only=True):
    number: int


def _work(state: Work, message: object, _now: int) -> Sequence[Event]:
    if isinstance(message, Run):
        return (msgspec.convert(typical(message.number), Started),)
    if isinstance(message, Worked) and message.number == state.number:
        return (Finished(number=message.number),)
    return ()


def _worked(state: Work, event: Event) -> Work | None:
    if isinstance(event, Started):
        return Work(int(event.id, 16))
    return None if isinstance(event, Finished) else state


def _outstanding(state: Work) -> Sequence[Effect]:
    if state.number is None:
        return ()
    return (DoWork(subject="work", intent=f"work/{state.number}", number=state.number),)


def _do(effect: DoWork, context: EffectContext) -> Signal:
    """Run the effect: print the job's number and the time on standard output."""
    context.fence("work")
    os.write(1, f"{effect.number} {time.monotonic_ns()}\n".encode())
    context.done("work")
    return Worked(number=effect.number)


def kinds() -> dict[str, Kind[object]]:
    """Return all three kinds by name."""
    gauge = Kind(
        name="gauge",
        shards=1,
        state=Reading,
        format=1,
        decider=Decider(
            initial=Reading(), decide=lambda *_: (), evolve=_read, due=lambda _: None, outstanding=lambda _: ()
        ),
    )
    ear = Kind(
        name="ear",
        shards=1,
        state=Ear,
        format=1,
        decider=Decider(
            initial=Ear(), decide=_hear, evolve=lambda s, _: s, due=lambda _: None, outstanding=lambda _: ()
        ),
        subscribes={Measured: lambda _: ("node",)},
        at_start=("node",),
    )
    job = Kind(
        name="job",
        shards=1,
        state=Work,
        format=1,
        decider=Decider(initial=Work(), decide=_work, evolve=_worked, due=lambda _: None, outstanding=_outstanding),
        commands={Run: lambda run: (str(run.number),)},
        effects={DoWork: Job(_do, timeout_seconds=60.0)},
    )
    return {"gauge": gauge, "ear": ear, "job": job}  # type: ignore[dict-item]
