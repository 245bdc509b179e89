"""A test kind with a subscription: for each `tally.Added`, the entity with the same key records one `Seen`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from chronolet.kernel.kind import Decider, Kind
from chronolet_schemas.envelope import Event
from chronolet_schemas.registry import registered
from tests.kernel import tally


@registered
class Seen(Event, frozen=True, kw_only=True):
    number: int
    count: int
    checksum: int


class Mirror(msgspec.Struct, frozen=True):
    count: int = 0
    checksum: int = 0


def decide(state: Mirror, message: object, _now: int) -> Sequence[Event]:
    if isinstance(message, tally.Added):
        return (
            Seen(number=message.number, count=state.count + 1, checksum=tally.chained(state.checksum, message.number)),
        )
    return ()


def evolve(_state: Mirror, event: Event) -> Mirror:
    return Mirror(event.count, event.checksum) if isinstance(event, Seen) else _state


DECIDER: Decider[Mirror] = Decider(
    initial=Mirror(), decide=decide, evolve=evolve, due=lambda _: None, outstanding=lambda _: ()
)


def kind(shards: int) -> Kind[Mirror]:
    return Kind(
        name="mirror",
        shards=shards,
        state=Mirror,
        format=1,
        decider=DECIDER,
        subscribes={tally.Added: lambda added: (added.key,)},
        creates=frozenset({tally.Added}),
    )
