"""A test kind that obeys commands: effects, timers, refusals, ends and failures on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from chronolet.kernel.decider import Decider, Due, Effect, EffectFailed
from chronolet.kernel.kind import EventDriven, Job, Kind, Worker
from chronolet_schemas.envelope import Command, Event, Signal
from chronolet_schemas.registry import registered


@registered
class Tell(Command, frozen=True, kw_only=True):
    """Becomes `Told` with the same fields, unless `refuse`, `raises` or `silent` is set."""

    key: str
    wish: str = ""
    standing: str = ""
    due: int = 0
    ends: bool = False
    refuse: bool = False
    raises: bool = False
    silent: bool = False


@registered
class Told(Event, frozen=True, kw_only=True):
    wish: str = ""
    standing: str = ""
    due: int = 0


@registered
class Refused(Event, frozen=True, kw_only=True):
    pass


@registered
class Ended(Event, frozen=True, kw_only=True):
    pass


@registered
class Answered(Event, frozen=True, kw_only=True):
    wish: str
    word: str = ""


@registered
class GaveUp(Event, frozen=True, kw_only=True):
    wish: str
    error: str
    timed_out: bool = False

    def subject(self) -> str:
        return "wish"


@registered
class Heard(Event, frozen=True, kw_only=True):
    word: str


@registered
class Rang(Event, frozen=True, kw_only=True):
    at: int
    still: int = 0


class Chore(msgspec.Struct, frozen=True):
    told: int = 0
    wish: str = ""
    standing: str = ""
    due: int = 0
    heard: tuple[str, ...] = ()


class OneShot(Effect, frozen=True, kw_only=True):
    pass


class Standing(Effect, frozen=True, kw_only=True):
    pass


class Answer(Signal, frozen=True, kw_only=True):
    intent: str
    word: str = ""


class Word(Signal, frozen=True, kw_only=True):
    """Becomes `Heard`; the word "poison" makes the decider raise."""

    word: str


SILENT_DUE = 13
"""A `Due` at this time yields no event; one at the next time stays due."""


def decide(state: Chore, message: object, _now: int) -> Sequence[Event]:
    match message:
        case Tell():
            return _told(message)
        case Answer() if state.wish == message.intent:
            return (Answered(wish=message.intent, word=message.word),)
        case EffectFailed() if state.wish == message.intent:
            return (GaveUp(wish=message.intent, error=message.error, timed_out=message.timed_out),)
        case Word(word="poison"):
            raise ValueError("poisoned word")
        case Word():
            return (Heard(word=message.word),)
        case Due(at=at):
            return () if at == SILENT_DUE else (Rang(at=at, still=at if at == SILENT_DUE + 1 else 0),)
    return ()


def _told(tell: Tell) -> Sequence[Event]:
    if tell.raises:
        raise ValueError("poisoned command")
    if tell.silent:
        return ()
    if tell.refuse:
        return (Refused(),)
    if tell.ends:
        return (Told(), Ended())
    return (Told(wish=tell.wish, standing=tell.standing, due=tell.due),)


def evolve(state: Chore, event: Event) -> Chore | None:
    replace = msgspec.structs.replace
    match event:
        case Told():
            return replace(
                state, told=state.told + 1, wish=event.wish, standing=event.standing, due=event.due or state.due
            )
        case Answered() | GaveUp():
            return replace(state, wish="")
        case Heard():
            return replace(state, heard=(*state.heard, event.word))
        case Rang():
            return replace(state, due=event.still)
        case Ended():
            return None
    return state


def outstanding(state: Chore) -> Sequence[Effect]:
    one_shot = (OneShot(subject="wish", intent=state.wish),) if state.wish else ()
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
    """Make the kind, with one shard and the given workers. `timeout`: time-out of its one-shots, in seconds."""
    fields: dict[str, Any] = {
        "name": "chore",
        "shards": 1,
        "state": Chore,
        "format": 1,
        "decider": DECIDER,
        "commands": {Tell: lambda tell: (tell.key,)},
        "effects": {OneShot: Job(one_shot or _at_once, timeout)},
        "standing": standing if isinstance(standing, Mapping) else {Standing: Job(standing or _until_cancelled)},
    }
    return Kind(**fields | more)


def _at_once(effect: OneShot, context: Any) -> Signal:
    context.fence("answer")
    context.done("answer")
    return Answer(intent=effect.intent)


def _until_cancelled(_effect: Standing, context: Any) -> None:
    context.cancelled.wait()
