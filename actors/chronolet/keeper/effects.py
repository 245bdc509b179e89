"""Effect workers of the keeper, which measure the log, write archive files and trim the log. `workers.probe_keeping`
does the same for the outcomes of probes.

Input: effects of `wanted`. Output: signals. The workers change only the node's log and archive folder. They check the
keeper's fencing token before each change, so a keeper that has lost its shard changes nothing. Next: `decider`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import structlog
from msgspec import Struct

from chronolet.keeper import signals, wanted
from chronolet.keeper.disk import DiskReports
from chronolet.keeper.workers.patrol import Patrol
from chronolet.keeper.workers.probe_keeping import ProbeKeeping
from chronolet.keeper.workers.problems import ArchiveProblem
from chronolet.kernel.kind import EffectContext, Ended
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.storage.store import Fenced, Head, Store, StoreUnreachable
from chronolet_schemas.envelope import START, Position, Signal
from chronolet_schemas.keys import Shard, shards_of
from chronolet_schemas.times import time_of

MEASURE_SECONDS = 60.0
PAUSE_SECONDS = 0.01
"""How long indexing waits after every few hundred entries, which take as long: meanwhile, other threads run."""
KEEPER = Shard("keeper")
_NEW_OWNER = "the keeper has a new owner"

Indexed = Callable[[Archive, Callable[[], None]], Iterable[str]]
"""A function that writes what an archive lacks, and yields a line for each file. It often calls its second argument,
which waits, or raises if the work must stop.
"""

log = structlog.get_logger("chronolet.keeper")


class Keeping(Struct, frozen=True):
    """The keeper's workers, with their dependencies."""

    store: Store
    archive: Callable[[], Archive]
    """Returns the archive of the log's current run."""
    now: Callable[[], int]
    """Returns the current time in milliseconds since the epoch."""
    disk: DiskReports
    probes: ProbeKeeping
    announce: Callable[[], None] = lambda: None
    """Publishes that this node is alive; called after each measurement."""
    measure_seconds: float = MEASURE_SECONDS
    problem: ArchiveProblem = msgspec.field(default_factory=ArchiveProblem)
    indexed: Indexed = lambda _archive, _pause: ()
    """Writes the indexes and checkpoints that an archive lacks."""
    pause_seconds: float = PAUSE_SECONDS

    def measure(self, effect: wanted.MeasureLog, context: EffectContext) -> None:
        """Measure the log immediately, and then every `measure_seconds`."""
        patrol = Patrol(effect.reported)
        while not context.cancelled.is_set():
            try:
                context.send(self._measured(patrol))
                if (probes := self.probes.measured()) is not None:
                    context.send(probes)
                self.announce()
            except StoreUnreachable as error:
                # The hosts already log that the store is unreachable.
                log.debug("measurement failed, retrying", error=str(error))
            context.cancelled.wait(self.measure_seconds)

    def guard(self, _effect: wanted.GuardDisk, context: EffectContext, _ended: Ended) -> Callable[[], None]:
        """Forward reports about the disk reserve."""
        return self.disk.follow(context.send)

    def index(self, _effect: wanted.IndexArchive, context: EffectContext) -> None:
        """Write the indexes and checkpoints that the archive lacks, every `measure_seconds`. What fails is tried again
        then, and matters to nobody: readers do without.
        """

        def pause() -> None:
            context.fence("archive.index")
            context.cancelled.wait(self.pause_seconds)

        # Not right after the start, when the other kinds have much to do.
        while not context.cancelled.wait(self.measure_seconds):
            try:
                for line in self.indexed(self.archive(), pause):
                    log.info(line)
            except (OSError, StoreUnreachable) as error:
                log.debug("archive not indexed, retrying", error=str(error))

    def _measured(self, patrol: Patrol) -> signals.LogMeasured:
        now, heads = self.now(), self._registered()
        unowned = {shard: self.store.unowned(shard, head.token) for shard, head in heads.items()}
        first = self.store.read_log(START, 1)
        # Before the files are listed: a file that is written meanwhile is not missed.
        archived = self.store.archived()[0]
        return signals.LogMeasured(
            last=str(self.store.last()),
            archived=str(archived),
            begun_at=time_of(first[0]) if first else now,
            needed={str(shard): str(self._needed(shard, head)) for shard, head in heads.items()},
            unowned={str(shard): now - since for shard, since in unowned.items() if since is not None},
            incomplete=patrol.visit(self.archive(), archived),
        )

    def _registered(self) -> Mapping[Shard, Head]:
        """Return the heads of the shards that ever had an owner, in whichever process. Any other shard begins by
        reading the archive, so trimming does not affect it.

        If the layout changes after this, a former shard that is asked for has the lowest cursor of all and no snapshot,
        so it lets nothing be trimmed.
        """
        counts = self.store.layout().counts
        heads = self.store.heads([shard for kind, count in counts.items() for shard in shards_of(kind, count)])
        return {shard: head for shard, head in heads.items() if head.token or head.version or head.unowned_since}

    def _needed(self, shard: Shard, head: Head) -> Position:
        snapshot = self.store.read_snapshots([shard]).get(shard)
        return min(head.log_cursor, snapshot.position) if snapshot else START

    def write(self, effect: wanted.WriteArchive, context: EffectContext) -> Signal:
        """Write one archive file. Idempotent: a repetition rewrites the file of the first attempt."""
        context.fence("archive.write")
        after, upto = Position.parse(effect.after), Position.parse(effect.upto)
        try:
            archive = self.archive()
            archive.expect(self.store.archived()[0])
            written = archive.write(self.store.scan(after, upto), after)
        except (OSError, ValueError, ArchiveDamaged) as error:
            return signals.JobRefused(subject=effect.subject, intent=effect.intent, error=str(error))
        context.done("archive.write")
        context.fence("archive.mark")
        if not self.store.mark_archived(KEEPER, context.token, written.last):
            return signals.JobRefused(subject=effect.subject, intent=effect.intent, error=_NEW_OWNER)
        context.done("archive.mark")
        return signals.ArchiveDone(
            subject=effect.subject,
            intent=effect.intent,
            file=written.name,
            first=str(written.first),
            last=str(written.last),
            events=written.count,
            size_bytes=written.size_bytes,
            sha256=written.sha256,
        )

    def trim(self, effect: wanted.TrimLog, context: EffectContext) -> Signal:
        """Trim the stream, but only after reading the same entries unchanged from the archive."""
        context.fence("log.trim")
        upto = Position.parse(effect.upto)
        try:
            self._verify(upto)
        except (OSError, ArchiveDamaged) as error:
            refused = f"not trimmed: the archive could not be verified: {error}"
            return signals.JobRefused(subject=effect.subject, intent=effect.intent, error=refused)
        context.fence("log.trim")
        result = self.store.trim(KEEPER, context.token, upto, self._holding(effect.let_go))
        if isinstance(result, Fenced):
            return signals.JobRefused(subject=effect.subject, intent=effect.intent, error=_NEW_OWNER)
        context.done("log.trim")
        trimmed = self.store.archived()[1]
        return signals.TrimDone(subject=effect.subject, intent=effect.intent, upto=str(trimmed), removed=result)

    def _verify(self, upto: Position) -> None:
        """Raise ArchiveDamaged if the archive differs from the stream in an entry to be trimmed."""
        archive, trimmed = self.archive(), self.store.archived()[1]
        archive.expect(trimmed)
        pairs = itertools.zip_longest(archive.read(trimmed, upto), self.store.scan(trimmed, upto))
        for kept, entry in pairs:
            if kept != entry:
                found = f"holds {kept.position}" if kept else "ends"
                expected = str(entry.position) if entry else "nothing"
                raise ArchiveDamaged(
                    f"{archive.storage.place()}: {found} where the log has {expected}, or differs from it there"
                )

    def _holding(self, let_go: Sequence[str]) -> list[Shard]:
        """Return the shards that hold back trimming: all that ever had an owner, except unowned ones in `let_go`."""
        heads = self._registered()
        away = {
            shard
            for shard, head in heads.items()
            if str(shard) in let_go and self.store.unowned(shard, head.token) is not None
        }
        return [shard for shard in heads if shard not in away]
