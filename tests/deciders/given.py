"""The given / when / then function for deciders, which also checks the laws that hold for all deciders.

    given(DECIDER, happened).when(message, at=5_000).then(expected, expected)

Every event and message is encoded and decoded, and so is the state in its snapshot form. `evolve` must not raise, each
subject has one effect, `outstanding` is deterministic, and each Due yields events and a later `due`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeVar

import msgspec

from chronolet.kernel.kind import Decider, Due, Effect
from chronolet.kernel.step.snapshots import EntityImage, decode_states, encode_states
from chronolet_schemas import codec, kube_events, registry
from chronolet_schemas.envelope import Command, Event, Message, Signal

E = TypeVar("E", bound=Event)


class Scene:
    """A decider with its present state. `events`: the events of the last decision."""

    def __init__(self, decider: Decider[Any], events: Iterable[Event] = ()) -> None:
        self.decider = decider
        self.state: Any = decider.initial
        self.events: Sequence[Event] = ()
        self.at = 0
        self.history: list[Event] = []
        for event in events:
            self._fold(event)

    def when(self, message: Message, *, at: int | None = None) -> Self:
        """Handle a message at `at` (milliseconds); without `at`, no time passes."""
        self.at = self.at if at is None else at
        before = None if self.state is None else self.decider.due(self.state)
        state = self.decider.initial if self.state is None else self.state
        self.events = tuple(self.decider.decide(state, over_the_wire(message), self.at))
        for event in self.events:
            self._fold(event)
        if isinstance(message, Due):
            assert self.events, f"a Due at {message.at} yielded nothing"
            after = None if self.state is None else self.decider.due(self.state)
            assert after is None or after > message.at, f"due at {before}, and at {after} after its events"
        return self

    def then(self, *expected: Event) -> Self:
        """Check the events of the last decision, without KubeEvents."""
        assert self.facts == expected
        return self

    def then_kube_events(self, *expected: tuple[str, str]) -> Self:
        """Check the KubeEvents of the last decision, as (reason, message)."""
        assert self.reasons_and_texts == expected
        return self

    @property
    def facts(self) -> tuple[Event, ...]:
        """The events of the last decision without KubeEvents."""
        return tuple(event for event in self.events if not isinstance(event, kube_events.Recorded))

    @property
    def kinds(self) -> list[str]:
        """The class names of `facts`."""
        return [type(event).__name__ for event in self.facts]

    def only(self, kind: type[E]) -> E:
        """Return the only event of this class in the last decision."""
        (found,) = (event for event in self.facts if isinstance(event, kind))
        return found

    @property
    def reasons_and_texts(self) -> tuple[tuple[str, str], ...]:
        """Reason and message of the KubeEvents of the last decision."""
        return tuple((event.reason, event.message) for event in self.recorded)

    @property
    def recorded(self) -> tuple[kube_events.Recorded, ...]:
        """The KubeEvents of the last decision."""
        return tuple(event for event in self.events if isinstance(event, kube_events.Recorded))

    @property
    def effects(self) -> dict[str, Effect]:
        """The outstanding effects by subject."""
        wanted = [] if self.state is None else self.decider.outstanding(self.state)
        return {effect.subject: effect for effect in wanted}

    @property
    def due(self) -> int | None:
        """The time at which the state next needs a decision."""
        return None if self.state is None else self.decider.due(self.state)

    def wake(self) -> Self:
        """Advance to `due` and handle the Due."""
        assert self.due is not None
        return self.when(Due(at=self.due), at=max(self.due, self.at))

    def _fold(self, event: Event) -> None:
        state = self.decider.initial if self.state is None else self.state
        self.history.append(event)
        self.state = self.decider.evolve(state, over_the_wire(event))
        if self.state is not None:
            self.state = through_snapshot(self.state)
            check_effects(self.decider, self.state)


def given(decider: Decider[Any], *events: Event) -> Scene:
    """Create a scene after these events."""
    return Scene(decider, events)


def over_the_wire(message: Any) -> Any:
    """Return the message, encoded and decoded."""
    if isinstance(message, Signal):
        data = msgspec.msgpack.encode(message)
        back = msgspec.msgpack.decode(data, type=type(message))
        # A signal's sequences may be lists or tuples: they stay in memory.
        assert msgspec.msgpack.encode(back) == data
        return back
    base: Any = Command if isinstance(message, Command) else Event
    back = codec.decode(registry.type_of(type(message)), codec.encode(message), base)
    assert back == message
    return back


def through_snapshot(state: Any) -> Any:
    """Return the state, written to a snapshot and read back."""
    back = decode_states(type(state), encode_states({"one": EntityImage(state=state)}))["one"].state
    assert back == state
    return back


def check_effects(decider: Decider[Any], state: Any) -> None:
    """Check that each subject has one effect and that `outstanding` is deterministic."""
    wanted = list(decider.outstanding(state))
    subjects = [effect.subject for effect in wanted]
    assert len(subjects) == len(set(subjects)), subjects
    assert wanted == list(decider.outstanding(state))
