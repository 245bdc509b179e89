"""The keeper's hands: measuring the log, writing archive files, trimming.

Comes in: effects of `wanted`. Goes out: signals. All of it touches the node's own log and archive folder only; each
call carries the keeper's token, so that a keeper that lost its shard changes nothing. Next: `decider`.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chronolet.keeper import signals, wanted
from chronolet.kernel.archive import Archive, ArchiveDamaged
from chronolet.kernel.kind import EffectContext
from chronolet.kernel.store import Fenced, Store
from chronolet_schemas.envelope import START, Position, Signal
from chronolet_schemas.keys import Shard

MEASURE_SECONDS = 60.0
KEEPER = Shard("keeper")


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the workers need."""

    store: Store
    archive: Callable[[], Archive]
    """Of the log's present run."""
    shards: Sequence[Shard]
    """All shards of the node, hosted here or not."""
    now: Callable[[], int]
    """Milliseconds since the epoch."""
    disk: queue.SimpleQueue[signals.BallastGone | signals.BallastBack]

    def measure(self, _effect: wanted.MeasureLog, context: EffectContext) -> None:
        """Measure now, and every minute."""
        while not context.cancelled.is_set():
            context.send(self._measured())
            context.cancelled.wait(MEASURE_SECONDS)

    def guard(self, _effect: wanted.GuardDisk, context: EffectContext) -> None:
        """Hand on what happened to the disk."""
        while not context.cancelled.is_set():
            try:
                context.send(self.disk.get(timeout=MEASURE_SECONDS))
            except queue.Empty:
                continue

    def _measured(self) -> signals.LogMeasured:
        heads = self.store.heads(self.shards)
        now = self.now()
        unowned = {}
        for shard, head in heads.items():
            if head.token and (since := self.store.unowned(shard, head.token)):
                unowned[str(shard)] = now - since
        first = self.store.read_log(START, 1)
        return signals.LogMeasured(
            last=str(self.store.last()),
            archived=str(self.store.archived()[0]),
            begun_at=first[0].position.milliseconds if first else now,
            unowned=unowned,
        )

    def write(self, effect: wanted.WriteArchive, context: EffectContext) -> Signal:
        """Write one archive file. A repeat finds the file of its first try by its name, and writes it anew."""
        context.fence("archive.write")
        after, upto = Position.parse(effect.after), Position.parse(effect.upto)
        try:
            written = self.archive().write(self.store.scan(after, upto), after)
        except (OSError, ValueError, ArchiveDamaged) as error:
            return signals.JobRefused(subject=effect.subject, intent=effect.intent, error=str(error))
        context.done("archive.write")
        context.fence("archive.mark")
        if not self.store.mark_archived(KEEPER, context.token, written.last):
            return signals.JobRefused(subject=effect.subject, intent=effect.intent, error="the keeper has a new owner")
        context.done("archive.mark")
        return signals.ArchiveDone(
            subject=effect.subject,
            intent=effect.intent,
            file=written.path.name,
            first=str(written.first),
            last=str(written.last),
            events=written.count,
            size_bytes=written.size_bytes,
            sha256=written.sha256,
        )

    def trim(self, effect: wanted.TrimLog, context: EffectContext) -> Signal:
        """Trim in small pieces, until nothing more goes."""
        holding = [shard for shard in self.shards if str(shard) not in effect.let_go]
        removed = 0
        while True:
            context.fence("log.trim")
            answer = self.store.trim(KEEPER, context.token, Position.parse(effect.upto), holding)
            if isinstance(answer, Fenced):
                return signals.JobRefused(
                    subject=effect.subject, intent=effect.intent, error="the keeper has a new owner"
                )
            removed += answer
            if answer == 0:
                context.done("log.trim")
                return signals.TrimDone(subject=effect.subject, intent=effect.intent, removed=removed)
