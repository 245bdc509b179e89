"""What a change has to say of itself, so that a log can be decided with it. Pure.

Input: none. Output: `Change`, `Step`. Next: `two_runs`, which decides; `chronolet.node.whatif`, which has the changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from chronolet.history.recorded_decisions import Recorded
from chronolet.kernel.kind import Decider, Effect, Kind
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Event, Message, Position

Certainty = Literal["exact", "estimate"]
EntityName = tuple[str, str]
"""The actor kind and the key of an entity."""


class Step(NamedTuple):
    """A decision in either run: the events of the record, and those with the change. `at` is in milliseconds.

    `position`: the first recorded event; None if the record has no such decision.
    """

    at: int
    position: Position | None
    entity: EntityName
    recorded: tuple[Event, ...]
    changed: tuple[Event, ...]
    certainty: Certainty


class Both(NamedTuple):
    """The states of an entity in the two runs; None where it does not exist."""

    recorded: Any
    changed: Any


class Estimating(Protocol):
    """Estimates what becomes of one part of the node after the outside world began to differ for it."""

    def add(self, one: Recorded) -> Iterable[Step]:
        """Add a later decision of the record about this part."""

    def end(self, at: int) -> Iterable[Step]:
        """Return what is known only at the end of the range."""

    def unknown(self) -> Iterable[str]:
        """Return what the record does not tell, each as a sentence without a full stop."""


class Change(Protocol):
    """A changed setting or manifest."""

    def kinds(self) -> Sequence[Kind[Any]]:
        """Return the kinds as a process that the log does not describe decides with the change."""

    def kinds_of(self, process: kernel.ProcessStarted) -> Sequence[Kind[Any]]:
        """Return the kinds as this process would have decided."""

    def part(self, entity: EntityName) -> str | None:
        """Return the part of the node to which an entity belongs, such as a pod; None if the change cannot concern it.
        Parts do not influence each other.
        """

    def note(self, one: Recorded) -> None:
        """Take note of a recorded decision about one of the parts, before it is decided with the change."""

    def state(self, entity: EntityName, state: Any) -> Any:
        """Return the state with which the changed run begins."""

    def message(self, entity: EntityName, message: Message) -> Message:
        """Return a recorded message as it is with the change."""

    def view(self, effect: Effect) -> Hashable:
        """Return what identifies an effect in both runs."""

    def noticed(self, entity: EntityName, decider: Decider[Any], state: Any) -> frozenset[Hashable]:
        """Return what the outside world notices of the effects that are outstanding."""

    def repeats(
        self, entity: EntityName, states: Both, until: int, *, ended: bool
    ) -> Iterator[tuple[int, Message | None]]:
        """Yield the messages up to a time that the record lacks because they only repeated earlier ones, or because
        nobody asked for them, and that matter with the change; each with its time. None: there may be one. `ended`: the
        range ends at this time.
        """

    def may_be_late(self, one: Recorded) -> bool:
        """Whether a decision that differs from this recorded one may have been made before, because the log lacks
        inputs that changed nothing.
        """

    def begins_anew(self, one: Recorded) -> bool:
        """Whether a part of the node begins a new life with this recorded decision, which does not depend on how it
        lived before.
        """

    def estimating(
        self, part: str, states: Mapping[EntityName, Both], at: int, kinds: Mapping[str, Kind[Any]]
    ) -> Estimating:
        """Return the estimate for a part of the node, whose entities have these states. `kinds`: those of `kinds` or
        `kinds_of`, by name, as the process decides with the change that runs at this time.
        """
