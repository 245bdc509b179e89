"""Reads the recorded history of a bug: the log that led to it, one message, and the right decision.

Input: a JSON file `<kind>/<name>.json`. Output: `History`, whose messages are instances of the product's
classes. Next: `test_histories`. The format is described in README.md.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from chronolet.kernel.decider import Decider, Due, Effect, EffectFailed
from chronolet_schemas import codec, registry
from chronolet_schemas.envelope import Command, Event, Message

FOLDER: Final = Path(__file__).parent
T: Final = 1_700_000_000_000
"""The time to which the times in a history are relative, in milliseconds since the epoch."""

_TIME: Final = re.compile(r"T([+-]\d+)")
_POSITION: Final = re.compile(r"(T[+-]\d+)(-\d+)")


class RecordedMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message in a file. `type`: a registered type (`pod.SpecAccepted@1`), `signals.<Class>` of the history's kind,
    `Due` or `EffectFailed`.
    """

    type: str
    fields: dict[str, Any]


class ExpectedEffect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An effect that must be outstanding: its class, subject and intent."""

    effect: str
    subject: str
    intent: str


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One history. `fixed_in`: commits; `wrong`: what happened before the fix; `right`: the rule that now holds.

    `events`: all events of the right decision, KubeEvents included. `effects`: all outstanding effects after it.
    """

    fixed_in: tuple[str, ...]
    wrong: str
    right: str
    log: tuple[RecordedMessage, ...]
    message: RecordedMessage
    at: str
    events: tuple[RecordedMessage, ...]
    effects: tuple[ExpectedEffect, ...]
    kind: str = ""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file. Raises msgspec.DecodeError if the file has another format."""
        return msgspec.structs.replace(msgspec.json.decode(path.read_bytes(), type=cls), kind=path.parent.name)

    @property
    def decider(self) -> Decider[Any]:
        """The kind's decider with default settings."""
        decider: Decider[Any] = importlib.import_module(f"chronolet.{self.kind}.decider").DECIDER
        return decider

    def events_of(self, recorded: Sequence[RecordedMessage]) -> tuple[Event, ...]:
        """Return the events, decoded from their wire format and through upcasters."""
        return tuple(codec.decode(one.type, _packed(one), Event) for one in recorded)

    @property
    def now(self) -> int:
        """The time at which the message is decided, in milliseconds since the epoch."""
        now: int = absolute(self.at)
        return now

    @property
    def decided(self) -> Message:
        """The message to decide, as an instance of its class."""
        recorded = self.message
        if "@" in recorded.type:
            cls = registry.class_of(codec.split_type(recorded.type)[0])
            base: Any = Command if cls is not None and issubclass(cls, Command) else Event
            command_or_event: Message = codec.decode(recorded.type, _packed(recorded), base)
            return command_or_event
        kernel: dict[str, Any] = {"Due": Due, "EffectFailed": EffectFailed}
        signals = importlib.import_module(f"chronolet.{self.kind}.signals")
        signal = kernel.get(recorded.type) or getattr(signals, recorded.type.removeprefix("signals."))
        # `convert` would ignore a field that the signal does not have or no longer has.
        assert not recorded.fields.keys() - set(signal.__struct_fields__), recorded
        message: Message = msgspec.convert(absolute(recorded.fields), signal)
        return message


def expected(effects: Iterable[ExpectedEffect]) -> tuple[ExpectedEffect, ...]:
    """Return the expected effects with each relative time in an intent made absolute."""
    return tuple(msgspec.structs.replace(one, intent=_TIME.sub(_absolute_time, one.intent)) for one in effects)


def shown(effects: Iterable[Effect]) -> tuple[ExpectedEffect, ...]:
    """Return effects in the form that a history file uses."""
    return tuple(ExpectedEffect(type(one).__name__, one.subject, one.intent) for one in effects)


def absolute(value: Any) -> Any:
    """Return the value with each relative time (`T+1500`, `T-10`) and position (`T+1500-7`) made absolute."""
    if isinstance(value, dict):
        return {key: absolute(one) for key, one in value.items()}
    if isinstance(value, list):
        return [absolute(one) for one in value]
    if not isinstance(value, str):
        return value
    if position := _POSITION.fullmatch(value):
        return f"{absolute(position[1])}{position[2]}"
    return int(_absolute_time(time)) if (time := _TIME.fullmatch(value)) else value


def _absolute_time(relative: re.Match[str]) -> str:
    return str(T + int(relative[1]))


def _packed(recorded: RecordedMessage) -> bytes:
    return msgspec.msgpack.encode(absolute(recorded.fields))
