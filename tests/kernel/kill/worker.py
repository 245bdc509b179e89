"""A worker process of the kill suite: the two test kinds on the real kernel, with a log of its store calls.

Input: a `WorkerJob` from the farm. Output: lines in `<folder>/calls/<pid>` (the request and reply of each step, each
shard acquired) and in `<folder>/notes` (the effects). Each line is written by one call, so that kill -9 leaves only
whole lines.
"""

import contextlib
import dataclasses
import os
import signal
import time
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import structlog

from chronolet.kernel import kind
from chronolet.kernel.hosting.process import Process, Setup
from chronolet.kernel.storage.redis.store import RedisStore, Timeouts
from chronolet.kernel.storage.store import Acquired, Committed, Conflict, Fenced, NotFree, Proof, Step
from chronolet.kernel.timing import Timing
from chronolet_schemas.envelope import Entry, Position, Signal
from chronolet_schemas.keys import Shard
from tests.kernel import mirror, tally

SHARDS: Mapping[str, int] = {"tally": 4, "mirror": 2}


class WorkerJob(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a worker."""

    url: str
    node: str
    folder: str
    lease_milliseconds: int = 300
    locks: bool = True
    slow_recovery: float = 0.0
    """Number of seconds for which each recovery keeps the interpreter busy."""
    snapshot_events: int = 400
    step_timeout: float = 5.0
    patience_seconds: float = 60.0
    """How long a request for another number of shards waits for shards that are not handed over."""


class Planted:
    """Kills the process at a crash point for which a file `<folder>/crash/<name of the point, with - for />` exists.

    The file is removed first, so that only one worker dies of it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "crash"

    def point(self, name: str) -> None:
        if name.startswith("reshard/"):
            with contextlib.suppress(FileNotFoundError):
                (self._folder / name.partition(" ")[0].replace("/", "-")).unlink()
                os.kill(os.getpid(), signal.SIGKILL)


class CallLog:
    """Writes lines to a file, where they survive a kill of the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def record(self, *values: object) -> None:
        os.write(self._file, (" ".join(map(str, (time.monotonic_ns(), *values))) + "\n").encode())


class WatchedStore(RedisStore):
    """The real store, which also logs its steps and acquisitions."""

    def __init__(self, job: WorkerJob, calls: CallLog) -> None:
        super().__init__(job.url, job.node, timeouts=Timeouts(step_seconds=job.step_timeout))
        self._calls = calls

    def step(self, step: Step) -> Committed | Fenced | Conflict:
        about = (step.shard, step.token, step.version, step.step_id)
        self._calls.record("sent", *about)
        reply = super().step(step)
        self._calls.record(type(reply).__name__.lower(), *about)
        return reply

    def acquire(
        self,
        shard: Shard,
        expected_token: str,
        process: str,
        schema: int,
        *,
        proof: Proof = "released",
        counter: str = "",
    ) -> Acquired | NotFree:
        answer = super().acquire(shard, expected_token, process, schema, proof=proof, counter=counter)
        if isinstance(answer, Acquired):
            self._calls.record("acquired", shard, answer.head.token, answer.head.version, "-")
        return answer


def note_taker(path: Path, process: list[str]) -> kind.Job:
    """Return a job that writes one line per note: the time just before the lease check, key, count, process."""
    notes = CallLog(path)

    def run(effect: tally.TakeNote, context: kind.EffectContext) -> Signal:
        before = time.monotonic_ns()
        context.fence("note")
        notes.record(before, context.entity, effect.count, process[0])
        context.done("note")
        return tally.TookNote(subject=effect.subject, intent=effect.intent, count=effect.count)

    return kind.Job(run, timeout_seconds=3600.0)  # an effect that gets no CPU time for a while must not run twice


def run(job: WorkerJob) -> None:
    """Run until killed, or until SIGTERM. An error that ends the process is written to `<folder>/errors/<pid>` and
    raised.
    """
    folder = Path(job.folder)
    structlog.configure(logger_factory=structlog.WriteLoggerFactory((folder / "log" / str(os.getpid())).open("w")))
    store = WatchedStore(job, CallLog(folder / "calls" / str(os.getpid())))
    process_id: list[str] = []
    tallies = dataclasses.replace(
        tally.kind(SHARDS["tally"]), effects={tally.TakeNote: note_taker(folder / "notes", process_id)}
    )
    process = Process(
        Setup(
            node=job.node,
            store=store,
            kinds={"tally": tallies, "mirror": mirror.kind(SHARDS["mirror"])},
            shards=SHARDS,
            history=lambda after: _slowly(store.scan(after), job.slow_recovery),
            locks=folder / "locks" if job.locks else None,
            address=str(os.getpid()),
            lease_milliseconds=job.lease_milliseconds,
            timing=Timing(snapshot_events=job.snapshot_events, reshard_patience_seconds=job.patience_seconds),
            faults=Planted(folder),
        )
    )
    process_id.append(process.id)
    signal.signal(signal.SIGTERM, lambda *_: process.retire())
    try:
        process.start()
        while not process.wait(0.1):
            pass  # Python runs the handler only on this thread, and the signal may have reached another one
        _raise(process.error)
    except BaseException:
        (folder / "errors" / str(os.getpid())).write_text(traceback.format_exc())
        raise


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error


def _slowly(entries: Iterable[Entry], seconds: float) -> Iterable[Entry]:
    """Yield the history slowly, keeping the interpreter busy: the lease's thread has to compete with the replay."""
    until = time.monotonic() + seconds
    for entry in entries:
        yield entry
        while time.monotonic() < until:
            Position.parse("1-1")
