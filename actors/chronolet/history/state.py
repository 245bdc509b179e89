"""The actors' states at a moment, folded in the reader's own process: no actor is asked.

Comes in: a store, an archive, the pure Kinds, a position. Goes out: `Moment`. A snapshot shortens the way where it is
of the Kind's format and not younger than the moment; else the history is folded from its beginning. Next: `cli`; the
page /pods, which is asked for again and again (`Latest`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from chronolet.history.entries import ArchiveReader, entries
from chronolet.kernel.decider import folded
from chronolet.kernel.kind import Kind
from chronolet.kernel.step.snapshots import decode_states
from chronolet.kernel.storage.store import HistoryMissing, Store
from chronolet_schemas import codec
from chronolet_schemas.envelope import START, Entry, Event, Position
from chronolet_schemas.keys import Shard, shard_for, shards_of


class Moment(Struct, frozen=True):
    """What every entity of the asked kinds was. `states[kind][key]`."""

    position: Position
    """Of the last entry read, START for an empty log."""
    states: Mapping[str, Mapping[str, Any]]
    unreadable: tuple[Position, ...] = ()
    """Own entries that this release cannot decode; they are left out, as the hosts leave them out."""


class _Fold:
    """The states of one kind on their way to the moment."""

    def __init__(self, kind: Kind[Any]) -> None:
        self.kind = kind
        self.states: dict[str, Any] = dict.fromkeys(kind.at_start, kind.decider.initial)
        self.begins: dict[Shard, Position] = dict.fromkeys(shards_of(kind.name, kind.shards), START)

    def restore(self, store: Store, latest: Position | None) -> None:
        """Begin each shard from its snapshot, if that is of use."""
        for shard, snapshot in store.read_snapshots(list(self.begins)).items():
            if snapshot.format != self.kind.format or (latest and snapshot.position > latest):
                continue
            try:
                images = decode_states(self.kind.state, snapshot.state)
            except (msgspec.ValidationError, msgspec.DecodeError):
                continue  # recovery would ignore it as well; the history tells the same
            self.begins[shard] = snapshot.position
            for key in self.kind.at_start:  # what is not in the snapshot has gone
                if shard_for(self.kind.name, self.kind.shards, key) == shard:
                    self.states.pop(key, None)
            self.states |= {key: image.state for key, image in images.items()}

    def add(self, key: str, entry: Entry) -> None:
        """Fold one entry. Undecodable if it cannot be read."""
        shard = shard_for(self.kind.name, self.kind.shards, key)
        if entry.position <= self.begins[shard]:
            return
        event = codec.decode(entry.type, entry.data, Event)
        state = folded(self.kind.decider, self.states.get(key), event)
        if state is None:
            self.states.pop(key, None)
        else:
            self.states[key] = state


def state_at(
    store: Store, archive: ArchiveReader, kinds: Sequence[Kind[Any]], position: Position | None = None
) -> Moment:
    """States as of `position`, or of now."""
    try:
        return _folded(store, archive, kinds, position)
    except HistoryMissing:
        # Where no archive is at hand: newer snapshots were kept and the log behind them trimmed while we read.
        return _folded(store, archive, kinds, position)


def _folded(store: Store, archive: ArchiveReader, kinds: Sequence[Kind[Any]], position: Position | None) -> Moment:
    folding = Folding(store, kinds, position)
    folding.read(entries(store, archive, folding.at, position))
    return folding.moment()


class Folding:
    """States on their way through the log. `at` is the last position read, or that of the oldest snapshot."""

    def __init__(self, store: Store, kinds: Sequence[Kind[Any]], latest: Position | None = None) -> None:
        """Begin with the snapshots that are of use, none of them younger than `latest`."""
        self._folds = {kind.name: _Fold(kind) for kind in kinds}
        for fold in self._folds.values():
            fold.restore(store, latest)
        self.at = min((begin for fold in self._folds.values() for begin in fold.begins.values()), default=START)
        self._unreadable: list[Position] = []

    def read(self, found: Iterable[Entry]) -> None:
        """Fold the entries that follow `at`."""
        for entry in found:
            self.at = entry.position
            name, _, key = entry.entity.partition("/")
            if name not in self._folds:
                continue
            try:
                self._folds[name].add(key, entry)
            except codec.Undecodable:
                self._unreadable.append(entry.position)

    def moment(self) -> Moment:
        """As far as was read. Its states go on with the next `read`."""
        return Moment(self.at, {name: fold.states for name, fold in self._folds.items()}, tuple(self._unreadable))


class Latest:
    """The states of now, asked for again and again: each time only what is new in the log is read.

    For one caller at a time, and each moment is valid until the next is asked for.
    """

    def __init__(self, store: Store, archive: ArchiveReader, kinds: Sequence[Kind[Any]]) -> None:
        self._store = store
        self._archive = archive
        self._kinds = kinds
        self._run = ""
        self._folding: Folding | None = None

    def moment(self) -> Moment:
        """Raises as `state_at` does."""
        run = self._store.run()
        folding, self._folding = self._folding, None  # what breaks off in the middle of its reading is not gone on with
        if folding is None or run != self._run or not self._goes_on(folding.at):
            folding = Folding(self._store, self._kinds)
        try:
            folding.read(entries(self._store, self._archive, folding.at))
        except HistoryMissing:  # trimmed while it was read: newer snapshots were kept before
            folding = Folding(self._store, self._kinds)
            folding.read(entries(self._store, self._archive, folding.at))
        self._run, self._folding = run, folding
        return folding.moment()

    def _goes_on(self, at: Position) -> bool:
        """Whether nothing is missing behind `at`, and the log has not lost its end meanwhile."""
        following = self._store.read_log(at, 1)
        return following[0].position.n == at.n + 1 if following else self._store.last() == at
