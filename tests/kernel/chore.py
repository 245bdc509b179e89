"""A test kind whose commands request effects, timers, refusals, failures, and the end of their entity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from chronolet.kernel.decider import Decider, Due, Effect, EffectFailed
from chronolet.kernel.kind import EventDriven, Job, Kind, Worker
from chronolet_schemas.envelope import Command, Event, Signal
from chronolet_schemas.registry import registered


@registered
class Assign(Command, frozen=True, kw_only=True):
    """A command that leads to `Assigned` with the same fields, unless `ends`, `refuse`, `raises` or `silent` is set."""

    key: str
    one_shot: str = ""
    standing: str = ""
    due: int = 0
    ends: bool = False
    refuse: bool = False
    raises: bool = False
    silent: bool = False


@registered
class Assigned(Event, frozen=True, kw_only=True):
    one_shot: str = ""
    standing: str = ""
    due: int = 0


@registered
class Refused(Event, frozen=True, kw_only=True):
    pass


@registered
class Ended(Event, frozen=True, kw_only=True):
    pass


@registered
class Completed(Event, frozen=True, kw_only=True):
    intent: str
    text: str = ""


@registered
class Failed(Event, frozen=True, kw_only=True):
    intent: str
    error: str
    timed_out: bool = False

    def subject(self) -> str:
        return "one-shot"


@registered
class Reported(Event, frozen=True, kw_only=True):
    text: str


@registered
class Fired(Event, frozen=True, kw_only=True):
    at: int
    still_due: int = 0


class Chore(msgspec.Struct, frozen=True):
    assigned: int = 0
    """Number of `Assigned` events."""
    one_shot: str = ""
    standing: str = ""
    due: int = 0
    reports: tuple[str, ...] = ()


class OneShot(Effect, frozen=True, kw_only=True):
    pass


class Standing(Effect, frozen=True, kw_only=True):
    pass


class Result(Signal, frozen=True, kw_only=True):
    intent: str
    text: str = ""


class Report(Signal, frozen=True, kw_only=True):
    """A signal that leads to `Reported`. With the text "poison", the decider raises."""

    text: str


SILENT_DUE = 13
"""A `Due` for this time leads to no event. A `Due` for one millisecond later leaves the entity due."""


def decide(state: Chore, message: object, _now: int) -> Sequence[Event]:
    match message:
        case Assign():
            return _assigned(message)
        case Result() if state.one_shot == message.intent:
            return (Completed(intent=message.intent, text=message.text),)
        case EffectFailed() if state.one_shot == message.intent:
            return (Failed(intent=message.intent, error=message.error, timed_out=message.timed_out),)
        case Report(text="poison"):
            raise ValueError("poisoned report")
        case Report():
            return (Reported(text=message.text),)
        case Due(at=at):
            return () if at == SILENT_DUE else (Fired(at=at, still_due=at if at == SILENT_DUE + 1 else 0),)
    return ()


def _assigned(command: Assign) -> Sequence[Event]:
    if command.raises:
        raise ValueError("poisoned command")
    if command.silent:
        return ()
    if command.refuse:
        return (Refused(),)
    if command.ends:
        return (Assigned(), Ended())
    return (Assigned(one_shot=command.one_shot, standing=command.standing, due=command.due),)


def evolve(state: Chore, event: Event) -> Chore | None:
    replace = msgspec.structs.replace
    match event:
        case Assigned():
            return replace(
                state,
                assigned=state.assigned + 1,
                one_shot=event.one_shot,
                standing=event.standing,
                due=event.due or state.due,
            )
        case Completed() | Failed():
            return replace(state, one_shot="")
        case Reported():
            return replace(state, reports=(*state.reports, event.text))
        case Fired():
            return replace(state, due=event.still_due)
        case Ended():
            return None
    return state


def outstanding(state: Chore) -> Sequence[Effect]:
    one_shot = (OneShot(subject="one-shot", intent=state.one_shot),) if state.one_shot else ()
    standing = (Standing(subject="standing", intent=state.standing),) if state.standing else ()
    return (*one_shot, *standing)


DECIDER: Decider[Chore] = Decider(
    initial=Chore(), decide=decide, evolve=evolve, due=lambda state: state.due or None, outstanding=outstanding
)


def kind(
    one_shot: Worker | None = None,
    standing: Worker | Mapping[type[Effect], EventDriven] | None = None,
    *,
    timeout: float = 3600.0,
    **more: Any,
) -> Kind[Chore]:
    """Return the kind, with one shard and the given workers. `timeout`: time-out of its one-shots, in seconds."""
    fields: dict[str, Any] = {
        "name": "chore",
        "shards": 1,
        "state": Chore,
        "format": 1,
        "decider": DECIDER,
        "signals": frozenset((Result, Report)),
        "commands": {Assign: lambda command: (command.key,)},
        "effects": {OneShot: Job(one_shot or _complete, timeout)},
        "standing": standing if isinstance(standing, Mapping) else {Standing: Job(standing or _until_cancelled)},
    }
    return Kind(**fields | more)


def _complete(effect: OneShot, context: Any) -> Signal:
    context.fence("work")
    context.done("work")
    return Result(intent=effect.intent)


def _until_cancelled(_effect: Standing, context: Any) -> None:
    context.cancelled.wait()
