"""Workers that archive segments, the raw outcomes of probes, and delete their old archive files.

Input: effects of `wanted`; the stream of segments, the log's archive. Output: signals. A segment is removed from the
stream only after its archive file has returned it unchanged. Each worker may be interrupted at any point and repeated:
a file that exists already is not written again, as the stream may lack its segments by then. Next: `probe_files`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import structlog
from msgspec import Struct

from chronolet.keeper import signals, wanted
from chronolet.kernel.kind import EffectContext
from chronolet.kernel.log.archive import Archive, ArchiveDamaged
from chronolet.kernel.storage.store import Store, StoreBroken, StoreUnreachable
from chronolet.ports.pods.probe_segments import SegmentEntry, SegmentStream
from chronolet.ports.pods.segment_files import SegmentFiles, WrittenFile
from chronolet.rules.probes.segments.encoding import SegmentDamaged, decode
from chronolet.rules.probes.segments.merging import merged
from chronolet.rules.probes.segments.segment import Segment
from chronolet_schemas.envelope import Position, Signal

MOST_SEGMENTS = 1_000
"""The maximum number of segments of an archive file."""
MOST_OUTCOMES = 100_000
"""About the maximum number of outcomes of an archive file; they are all in memory while it is written: some 100 MB if
each one differs from the one before.
"""
_OLDEST = 10
"""How many of the oldest files are considered for deletion at a time."""

log = structlog.get_logger("chronolet.keeper")


class ProbeKeeping(Struct, frozen=True):
    """The workers, with their dependencies. `archive` returns the archive of the log's current run; `files` returns the
    files of segments of an archive.
    """

    segments: SegmentStream
    archive: Callable[[], Archive]
    files: Callable[[Archive], SegmentFiles]
    store: Store

    def measured(self) -> signals.ProbesMeasured | None:
        """Return what there is to archive and to delete; None if there is nothing, or if it cannot be found out."""
        try:
            names = tuple(part.name for part in self.files(self.archive()).parts()[:_OLDEST])
            found = self._measured(names)
        except (StoreUnreachable, StoreBroken, OSError) as error:
            log.warning("cannot measure the segments of probe outcomes; retrying", error=str(error))
            return None
        return found if found.upto or names else None

    def _measured(self, names: tuple[str, ...]) -> signals.ProbesMeasured:
        begun_at, count, outcomes, upto = 0, 0, 0, ""
        for entry in itertools.islice(self.segments.entries(), MOST_SEGMENTS):
            begun_at, upto = begun_at or entry.id.milliseconds, str(entry.id)
            count, outcomes = count + 1, outcomes + entry.outcomes
            if outcomes >= MOST_OUTCOMES:
                break
        full = count == MOST_SEGMENTS or outcomes >= MOST_OUTCOMES
        return signals.ProbesMeasured(begun_at=begun_at, upto=upto, segments=count, is_full=full, files=names)

    def write(self, effect: wanted.ArchiveProbes, context: EffectContext) -> Signal:
        """Write one archive file, and remove its segments from the stream."""
        context.fence("probes.write")
        upto = Position.parse(effect.upto)
        try:
            # Another host's folder, or an emptied one, is refused, as for the log.
            self.archive().expect(self.store.archived()[0])
            written, skipped = self._written(Position.parse(effect.after), upto)
        except (OSError, ArchiveDamaged) as error:
            return signals.JobRefused(subject=effect.subject, intent=effect.intent, error=str(error))
        context.done("probes.write")
        context.fence("probes.trim")
        self.segments.trim(upto)
        context.done("probes.trim")
        return signals.ProbeArchiveDone(
            subject=effect.subject,
            intent=effect.intent,
            file=written.name,
            outcomes=written.outcomes,
            size_bytes=written.size_bytes,
            sha256=written.sha256,
            skipped=skipped,
        )

    def delete(self, effect: wanted.DeleteProbes, context: EffectContext) -> Signal:
        """Delete old archive files."""
        storage = self.archive().storage
        try:
            for name in effect.files:
                context.fence("probes.delete")
                storage.delete(name)
                context.done("probes.delete")
        except OSError as error:
            return signals.JobRefused(subject=effect.subject, intent=effect.intent, error=str(error))
        return signals.ProbeDeletionDone(subject=effect.subject, intent=effect.intent)

    def _written(self, after: Position, upto: Position) -> tuple[WrittenFile, int]:
        """Write the file unless an earlier attempt has, and read it back; return it, and how many segments it lacks.
        It has all others that the stream has up to `upto`: after the loss of Redis's newest entries, ids may repeat.
        """
        files = self.files(self.archive())
        # Before the files are listed: if another keeper removes segments meanwhile, its file is found, and kept.
        skipped: list[Position] = []
        segments = merged(_decoded(self.segments.entries(upto=upto), skipped))
        earlier = [part.name for part in files.parts() if (part.after, part.last) == (after, upto)]
        if earlier:
            return files.read_whole(earlier[0]), len(skipped)
        written = files.write(after, upto, segments)
        if list(files.segments(written.name)) != segments:
            raise ArchiveDamaged(f"{files.storage.place(written.name)}: does not return what was written")
        return written, len(skipped)


def _decoded(entries: Iterator[SegmentEntry], skipped: list[Position]) -> Iterator[Segment]:
    """Decode the segments. Damaged ones, and those of a later release, are added to `skipped`: their numbers will be
    missing.
    """
    for entry in entries:
        try:
            if entry.data:
                yield decode(entry.data)
        except SegmentDamaged as error:
            skipped.append(entry.id)
            log.warning("skipping a segment of probe outcomes", id=str(entry.id), error=str(error))
