"""Keeps the indexes and checkpoints of an archive complete.

Input: an `Archive`, the kinds whose states checkpoints have. Output: index and checkpoint files next to the archive
files, and an `Outcome` for each archive file that lacked something. Both result from the archive files alone, so it
does not matter who writes them, when, or how often. Next: the keeper, which does it all the time, and `cli.archive`.

Files are visited oldest first, because each checkpoint results from the one before and the entries in between. There is
none after a damaged, missing or lost file, unless it was written before: the states there are not known. Nor is there
one at an entry of another program, whose number would prove nothing to its reader: it is at the last entry before.

A run looks only at files that are new, that were written anew, or whose index or checkpoint was; and again at one with
a problem as soon as it or what precedes it has changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import Struct

from chronolet.history.derived import checkpoint
from chronolet.history.derived import index as indexes
from chronolet.history.derived.building import Building, Source
from chronolet.history.derived.checkpoint import Checkpoint, Summary, Unreadable, Version
from chronolet.history.derived.code import unchanged, version_of
from chronolet.history.derived.folds import FoldableKind, KindFold
from chronolet.history.derived.sealed import Unusable
from chronolet.history.derived.stored import Stored
from chronolet.kernel.log.archive import Archive, ArchiveDamaged, Gapless, Part
from chronolet_schemas import codec
from chronolet_schemas.envelope import START, Entry, Position

CHECKPOINT_ENTRIES = 30_000
"""The number of entries after which there is a checkpoint before a file's end: a keeper that could not write for a long
time writes a large file.
"""
_PAUSE_ENTRIES = 200
Pause = Callable[[], None]
"""Called after every few hundred entries. It may wait, so that other threads can run, or raise in order to stop."""


class Outcome(Struct, frozen=True):
    """What became of one archive file that lacked an index or a checkpoint."""

    file: str
    written: tuple[str, ...] = ()
    """The names of the files that were written."""
    problem: str = ""
    """Why something could not be written; empty if everything could."""
    passing: bool = False
    """Whether the problem is one of the storage, which may pass by itself."""


class _Visited(NamedTuple):
    """What is known of a file that was visited. Each text changes when the file that it stands for is written anew."""

    stamps: tuple[str, ...]
    """Those of the file, its index and its checkpoint."""
    before: tuple[str, ...]
    """Those of the last file before that lacked nothing."""
    problem: str
    checkpoint: str
    """The name of the checkpoint at the file's end."""


class Upkeep:
    """The indexes and checkpoints of one archive. `kinds` returns all kinds of the node."""

    def __init__(
        self,
        archive: Archive,
        kinds: Callable[[], Sequence[FoldableKind]],
        checkpoint_entries: int = CHECKPOINT_ENTRIES,
    ) -> None:
        self.archive = archive
        self._kinds = kinds
        self._interval = checkpoint_entries
        self._visited: dict[Part, _Visited] = {}
        self._listed: Mapping[str, str] | None = None
        """The stamps of all files, if nothing can be done as long as they are the same."""

    def run(self, pause: Pause = lambda: None) -> Iterator[Outcome]:
        """Write what is missing or cannot be used, file by file; yield an outcome for each file that lacked something.

        Raises OSError if the files cannot be listed.
        """
        listed = self.archive.storage.stamps()
        if listed == self._listed:
            return
        self._listed = None
        kinds = self._kinds()
        run = _Run(self.archive, kinds, {kind.name: version_of(kind) for kind in kinds}, self._interval, pause)
        before: tuple[str, ...] = ()
        settled = True
        parts = self.archive.needed()
        self._visited = {part: self._visited[part] for part in parts if part in self._visited}
        for part in parts:
            visited = self._visited.get(part)
            stamps = _stamps(listed, part, visited.checkpoint if visited else "")
            if visited is None or visited.stamps != stamps or (visited.problem and visited.before != before):
                pause()
                outcome = run.visit(part)
                if outcome is not None:
                    yield outcome
                if outcome is None or not (outcome.written or outcome.passing):
                    name = run.checkpoint_of(part)
                    stamps = _stamps(listed, part, name)
                    visited = _Visited(stamps, before, outcome.problem if outcome else "", name)
                    self._visited[part] = visited
                else:
                    # What was written is looked at again in the next run, which then knows its stamps.
                    visited, settled = None, False
                    self._visited.pop(part, None)
                    if outcome.problem:
                        continue
                if run.distrusted is not None:
                    self._visited.pop(run.distrusted, None)
                    run.distrusted, settled = None, False
            if visited is None or not visited.problem:
                run.passed(part)
                before = stamps
        if settled:
            self._listed = listed


def _stamps(listed: Mapping[str, str], part: Part, checkpoint_name: str) -> tuple[str, ...]:
    """Return the stamps of a file, its index and the checkpoint at its end."""
    return tuple(listed.get(name, "") for name in (part.name, indexes.name_of(part.name), checkpoint_name))


class Lacking(NamedTuple):
    """The names of the archive files that lack an index or a checkpoint."""

    writable: list[str]
    """Those that lack one that can be written."""
    blocked: list[str]
    """Those that lack one that cannot: they are damaged, or the states where they begin are not known."""


def lacks(
    archive: Archive, kinds: Sequence[FoldableKind], damaged: Collection[str] = (), missing: Collection[Position] = ()
) -> Lacking:
    """Say which archive files lack an index or a checkpoint. `damaged`: the names of damaged files. `missing`:
    positions within missing parts, or those of the entries before them. Raises OSError if the files cannot be listed.
    """
    stored, versions = Stored(archive), {kind.name: version_of(kind) for kind in kinds}
    found, known, before = Lacking([], []), True, START
    for part in archive.needed():
        lacks_index, lacks_checkpoint = _lacks(stored, part, versions)
        known = known and not any(before <= at < part.first for at in missing)
        if part.name in damaged:
            writable, known = False, known and not lacks_checkpoint
        else:
            writable = lacks_index or (lacks_checkpoint and known)
        if writable:
            found.writable.append(part.name)
        if (lacks_index and not writable) or (lacks_checkpoint and not (writable and known)):
            found.blocked.append(part.name)
        known, before = known or not lacks_checkpoint, part.last
    return found


def _lacks(stored: Stored, part: Part, versions: Mapping[str, Version]) -> tuple[bool, bool]:
    """Return whether a file lacks a usable index, and whether it lacks a usable checkpoint at its end."""
    try:
        stored.sound_index(part)
        own = stored.own_last(part)
        lacks_index = False
    except Unusable:
        own, lacks_index = part.last, True
    # Without the source, no code can be compared: there are no checkpoints.
    if own is None or not all(version.code for version in versions.values()):
        return lacks_index, False
    return lacks_index, not _usable(lambda: _sound_checkpoint(stored, own, versions))


def _usable(expect: Callable[[], object]) -> bool:
    try:
        expect()
    except Unusable:
        return False
    return True


def _sound_checkpoint(stored: Stored, position: Position, versions: Mapping[str, Version]) -> Checkpoint:
    stored.expect_checkpoint(position, versions)
    found = stored.checkpoint(position)
    found.check()
    return found


class _Run:
    """One run. `_passed`: the files that lack nothing; `_states`: the last ones that were folded."""

    def __init__(
        self,
        archive: Archive,
        kinds: Sequence[FoldableKind],
        versions: Mapping[str, Version],
        interval: int,
        pause: Pause,
    ) -> None:
        self._archive = archive
        self._kinds = kinds
        self._versions = versions
        self._interval = interval
        self._pause = pause
        self._stored = Stored(archive)
        self._passed: list[Part] = []
        self._states: _States | None = None
        self._problem = ""
        self.distrusted: Part | None = None
        """A file that was passed, although its index or checkpoint cannot be used."""

    def passed(self, part: Part) -> None:
        """Go on after a file that lacks nothing."""
        self._passed.append(part)

    def checkpoint_of(self, part: Part) -> str:
        """Return the name of the checkpoint at a file's end."""
        with suppress(Unusable):
            return checkpoint.name_of(self._stored.own_last(part) or part.last)
        return checkpoint.name_of(part.last)

    def visit(self, part: Part) -> Outcome | None:
        """Write what a file lacks; return None if it lacks nothing."""
        lacks_index, lacks_checkpoint = _lacks(self._stored, part, self._versions)
        if not lacks_index and not lacks_checkpoint:
            return None
        self._problem = ""
        beginning = self._begin(part) if lacks_checkpoint else None
        written: list[str] = []
        passing = False
        try:
            if lacks_index or beginning is not None:
                # One by one: what was written before an error counts.
                for name in self._written(part, beginning, lacks_index=lacks_index):
                    written += (name,)
        except (ArchiveDamaged, OSError) as error:
            self._problem = str(error)
            passing = isinstance(error, OSError)
        if self._problem:
            self._states = None
        return Outcome(part.name, tuple(written), self._problem, passing)

    def _begin(self, part: Part) -> Gapless | None:
        """Have the states where the file's entries begin. Return the check of these entries; None, and note a problem,
        if the states cannot be had.
        """
        last = self._passed[-1] if self._passed else None
        try:
            own, gapless = self._reached()
        except Unusable as error:
            self.distrusted = last
            self._problem = f"no checkpoint, because the index of {last.name if last else None} {error}"
            return None
        try:
            if part.first > (last.last if last else START):
                summary = self._stored.index_summary(part)
                copy.copy(gapless).check_number(Position(*summary.first), part.name, foreign=summary.foreign_first)
        except Unusable:
            pass  # the file itself will tell
        except ArchiveDamaged as gap:
            self._problem = f"no checkpoint: {gap}"
            return None
        if self._states is None or self._states.position != own:
            try:
                self._states = self._states_at(own)
            except Unusable as error:
                self.distrusted = last
                self._problem = f"no checkpoint, because the one at {own} {error}"
                return None
        return gapless

    def _reached(self) -> tuple[Position, Gapless]:
        """Return the position of the last entry so far that no other program has written, and a check of the entries
        that follow. Raises Unusable.
        """
        foreign = False
        for part in reversed(self._passed):
            own = self._stored.own_last(part)
            foreign = foreign or self._stored.index_summary(part).foreign_last
            if own is not None:
                break
        else:
            own = START
        gapless = Gapless(own)
        gapless.reached(own, foreign=foreign)
        return own, gapless

    def _states_at(self, position: Position) -> _States:
        states = _States(self._kinds)
        if position != START:
            states.begin_with(_sound_checkpoint(self._stored, position, self._versions))
        return states

    def _written(self, part: Part, beginning: Gapless | None, *, lacks_index: bool) -> Iterator[str]:
        """Read a file, and write its index if it lacks one, and its checkpoints if its beginning is known; yield the
        names of the files that were written.
        """
        content, offset, count = self._archive.content_of(part.name)
        place = self._archive.storage.place(part.name)
        source = Source(self._archive.node, self._archive.run, part, count, content, offset, place)
        building = Building(source, self._pause)
        last, contents = self._passed[-1].last if self._passed else START, {}
        states = self._states if beginning is not None else None
        begun, due = states.position if states else START, self._interval
        for number, entry in enumerate(building.entries(), 1):
            if number % _PAUSE_ENTRIES == 0:
                self._pause()
            if entry.position <= last or states is None or beginning is None:
                continue
            try:
                beginning.check(entry, place)
            except ArchiveDamaged as gap:  # before the file: it is sound itself
                self._problem, states = f"no checkpoint: {gap}", None
                continue
            last = entry.position
            states.add(entry)
            if number >= due and entry.type and last < part.last:
                contents[last] = self._content(part, states)
                due += self._interval
        # Only now is it known that the file is sound.
        if lacks_index:
            yield self._stored.put_index(building.index())
        if states is not None and states.position > begun:
            contents[states.position] = self._content(part, states)
        for position, encoded in contents.items():
            if not unchanged(self._versions):
                self._problem = "no checkpoint: the code on disk is no longer that of this process; start it again"
                return
            yield self._stored.put_checkpoint(position, encoded)

    def _content(self, part: Part, states: _States) -> bytes:
        position = states.position
        summary = Summary(
            format=checkpoint.FORMAT,
            node=self._archive.node,
            run=self._archive.run,
            position=(position.milliseconds, position.n),
            file=part.name,
            kinds=dict(self._versions),
        )
        return checkpoint.encode(summary, states.by_kind(), states.unreadable)


class _States:
    """The states of all entities of some kinds."""

    def __init__(self, kinds: Sequence[FoldableKind]) -> None:
        self._folds = {kind.name: KindFold(kind) for kind in kinds}
        self.position = START
        """The position of the last entry that they include, apart from those of other programs."""
        self.unreadable: dict[str, list[Unreadable]] = {kind.name: [] for kind in kinds}

    def begin_with(self, found: Checkpoint) -> None:
        """Start from a checkpoint. Raises Unusable."""
        for name, fold in self._folds.items():
            fold.states = found.states_of(name, fold.kind.state)
            self.unreadable[name] = list(found.unreadable.get(name, ()))
        self.position = found.position

    def add(self, entry: Entry) -> None:
        """Fold the next entry of the log."""
        if entry.type:
            self.position = entry.position
        name, _, key = entry.entity.partition("/")
        if name in self._folds:
            try:
                self._folds[name].add(key, entry)
            except codec.Undecodable:  # the hosts skip it as well
                self.unreadable[name].append(Unreadable(key, (entry.position.milliseconds, entry.position.n)))

    def by_kind(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the states by kind and key."""
        return {name: fold.states for name, fold in self._folds.items()}
