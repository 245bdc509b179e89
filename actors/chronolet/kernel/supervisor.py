"""The supervisor: takes shards, recovers them, starts their hosts, and starts them again when they fail.

Comes in: failures of hosts, the server's return, the lease's return, a tick a second. Goes out: hosts at work.
A restart takes a new epoch and steps one message at a time for a while. When the server has lost a tail, everything is
loaded again. What fails here ends the process: whatever runs it starts it again. Next: `process`.

A process without a shard stands by: it takes what becomes free.

    a shard:  free -> acquired -> recovered -> hosted -> (failed -> acquired ... | lost -> free)
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

import pykka
import structlog

from chronolet.kernel.host import Host, Services
from chronolet.kernel.kind import Kind
from chronolet.kernel.lease import Lease, proven_dead, sweep
from chronolet.kernel.reader import Reader
from chronolet.kernel.recovery import History, Recovery
from chronolet.kernel.routing import Router
from chronolet.kernel.seat import Recovered, Seat
from chronolet.kernel.shard_writer import ServerBehind, ShardLost
from chronolet.kernel.store import Acquired, Head, HistoryMissing, NotFree, StoreBroken, StoreUnreachable
from chronolet_schemas import kernel, registry
from chronolet_schemas.envelope import START, Event, Position
from chronolet_schemas.keys import Shard

UPKEEP_SECONDS = 60.0
STEADY_SECONDS = 60.0
FIRST_BACK_OFF_SECONDS = 0.4
LONGEST_BACK_OFF_SECONDS = 30.0
ABOVE_ALL_N = 10**15

log = structlog.get_logger("chronolet.kernel")


class Tick(NamedTuple):
    """A third of the lease's time has passed: a second, unless a test is in a hurry."""


class Upkeep(NamedTuple):
    """A minute has passed: look whether the server has lost anything, and whether a snapshot or a step is due."""


class HostFailed(NamedTuple):
    """A host's thread ended with an error."""

    seat: Seat
    error: BaseException


class Again(NamedTuple):
    """The back-off of a failed shard is over."""

    shard: Shard


class ServerBack(NamedTuple):
    """The reader reached the server again after it could not."""


class ReaderFailed(NamedTuple):
    """The reader's thread ended with an error."""

    error: Exception


class LeaseRegained(NamedTuple):
    """The lease was renewed after it had lapsed."""


class Retire(NamedTuple):
    """Stop everything and hand over at once."""


@dataclass(slots=True)
class Failures:
    """How often a shard's host failed in a row."""

    count: int = 0
    last: float = 0.0
    error: str = ""
    """Not yet told in an event."""


Adopt = Callable[[Router, str], str]
"""Given the router and the log's run, before the first shards of that run are taken: sends what is to be decided before
anything else. Empty when that is done; else why it has to wait, and then it is asked again.
"""


class Surrounding(NamedTuple):
    """What the supervisor is given by the process."""

    kinds: Mapping[str, Kind[Any]]
    services: Services
    lease: Lease
    history: History
    locks: Path | None
    router: Callable[[], Router]
    """Begins the log where there is none, and knows the number of shards that it fixed."""
    phase: Callable[[str], None]
    """Told the name of each phase of a start."""
    adopt: Adopt | None = None


class Supervisor(pykka.ThreadingActor):
    """Owns the hosts of a process."""

    use_daemon_thread = True

    def __init__(self, given: Surrounding, fatal: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._given = given
        self._fatal = fatal
        self._store = given.services.store
        self._hosted: dict[Shard, tuple[Seat, pykka.ActorRef[Host]]] = {}
        self._failures: dict[Shard, Failures] = {}
        self._waiting: set[Shard] = set()
        self._left: dict[Shard, str] = {}
        """Shards that are left alone, with what was said of it."""
        self._stands_by = False
        self._had: dict[Shard, int] = {}
        self._reload = False
        self._said = ""
        """The last complaint about the server."""
        self._adopted_run = ""
        self._said_of_adoption = ""
        self._router = given.router()
        self._run = self._store.run()
        self._reader = self._new_reader()

    def on_start(self) -> None:
        """Begin with the first tick at once."""
        self._tell(Tick())
        self._every(self._given.lease.renewal_seconds, Tick())
        self._every(UPKEEP_SECONDS, Upkeep())

    def on_failure(
        self,
        _exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """End the process; its hosts must not go on without a supervisor."""
        for seat, ref in self._hosted.values():
            seat.stopping.set()
            ref.stop(block=False)
        self._fatal(exception_value or RuntimeError("the supervisor failed"))

    def on_receive(self, message: Any) -> None:
        """Handle one notice; while the server is away it is kept for later."""
        try:
            self._handle(message)
            self._said = ""
        except (StoreUnreachable, StoreBroken) as error:
            if str(error) != self._said:  # once, however long it takes
                self._said = str(error)
                log.warning("waiting for the server", error=self._said, about=type(message).__name__)
            if not isinstance(message, Tick | Upkeep):  # those come again by themselves
                pause = self._given.lease.renewal_seconds / 2
                self._given.services.around.timers.after(pause, lambda: self._tell(message))

    def _tell(self, message: Any) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # timers and reader may find it dead, and must live
            self.actor_ref.tell(message)

    def _handle(self, message: Any) -> None:
        match message:
            case Tick():
                self._tick()
            case Upkeep():
                # An idle process has no step that would be refused by a server that was emptied under it.
                self._look_for_loss()
                self._nudge_all()
                self._store.forget_dead()
                sweep(self._given.locks, self._store.alive())
            case HostFailed():
                self._failed(message.seat, message.error)
            case Again():
                self._waiting.discard(message.shard)
                self._take_free()  # not the shard itself: while this notice was kept, a tick may have taken it
            case ServerBack():
                self._look_for_loss()
            case LeaseRegained():
                lapses = self._given.lease.lapses
                self._look_for_loss()  # first: what the server has lost was not taken over by anybody
                self._drop_what_others_took()
                self._given.lease.confirm(lapses)
            case ReaderFailed():
                raise message.error
            case Retire():
                self._retire()

    # -- taking shards -------------------------------------------------------------------------------------------
    def _take_free(self) -> None:
        ours = {shard for kind in self._given.kinds for shard in self._router.shards_of(kind)}
        wanted = ours - self._hosted.keys() - self._waiting
        if wanted:
            self._take(sorted(wanted, key=str))

    def _take(self, shards: Iterable[Shard]) -> None:
        if self._reload:
            return  # the next tick takes them, once there is a reader again
        if self._store.run() != self._run:
            self._lose_tail()  # shards of a server that was emptied have no log to go on with
            return
        if not self._adopted():
            return  # the next tick tries again
        alive = self._store.alive()
        acquired: dict[Shard, tuple[str, Head]] = {}
        notes: dict[Shard, list[Event]] = {}
        for shard, head in self._heads(list(shards)).items():
            proof = self._free(head, alive)
            answer = proof and self._acquire(shard, head, by_lock=proof == "lock")
            if isinstance(answer, NotFree) and answer.reason == "newer_schema":
                self._leave(shard, "a newer version of this program has written it")
            if proof and isinstance(answer, Acquired):
                acquired[shard] = (answer.head.token, answer.head)
                notes[shard] = self._notes(shard, answer.head, head.token, proof)
        if acquired:
            self._host(acquired, notes)
        elif not (self._hosted or self._waiting or self._stands_by):
            self._stands_by = True
            self._given.phase("standing by")
            log.info("no free shard, standing by")

    def _adopted(self) -> bool:
        """Whether what runs was adopted by this run of the log, or need not be."""
        if self._given.adopt is None or self._adopted_run == self._run:
            return True
        self._given.phase("adopting")
        why = self._given.adopt(self._router, self._run)
        if why and why != self._said_of_adoption:  # once, however long it takes
            self._said_of_adoption = why
            log.warning("waiting to adopt what runs", error=why)
        if why:
            return False
        self._adopted_run = self._run
        self._given.phase("acquiring")
        return True

    def _heads(self, shards: Sequence[Shard]) -> Mapping[Shard, Head]:
        """The shards' hashes; without those that are none, which are no reason to leave the others alone."""
        try:
            return self._store.heads(shards)
        except StoreBroken:
            heads: dict[Shard, Head] = {}
            for shard in shards:
                try:
                    heads.update(self._store.heads([shard]))
                except StoreBroken as error:
                    self._leave(shard, str(error))
            return heads

    def _leave(self, shard: Shard, error: str) -> None:
        if self._left.get(shard) != error:  # once, however long it takes
            self._left[shard] = error
            log.error("shard left alone", shard=str(shard), error=error)

    def _acquire(self, shard: Shard, head: Head, *, by_lock: bool) -> Acquired | NotFree | None:
        process = self._given.lease.process
        try:
            return self._store.acquire(shard, head.token, process, registry.SCHEMA, proven_dead=by_lock)
        except StoreBroken as error:
            self._leave(shard, str(error))
            return None

    def _free(self, head: Head, alive: Mapping[str, str]) -> Literal["released", "lease", "lock"] | None:
        owner = head.token.partition(":")[2]
        if not owner or owner == self._given.lease.process:
            return "released"
        if owner not in alive:
            return "lease"
        return "lock" if proven_dead(self._given.locks, owner) else None

    def _notes(self, shard: Shard, head: Head, former: str, proof: Literal["released", "lease", "lock"]) -> list[Event]:
        owner, us = former.partition(":")[2], self._given.lease.process
        notes: list[Event] = []
        if owner and owner != us:
            notes.append(kernel.ShardTakenOver(former_owner=owner, owner=us, proof=proof))
        had = self._had.get(shard, 0)
        if had > head.version:
            notes.append(kernel.TailLost(had_version=had, found_version=head.version))
        failures = self._failures.get(shard)
        if failures is not None and failures.error:
            notes.append(kernel.HostRestarted(error=failures.error, restarts=failures.count))
        return notes

    def _host(self, acquired: Mapping[Shard, tuple[str, Head]], notes: Mapping[Shard, list[Event]]) -> None:
        self._given.phase("recovering")
        careful = frozenset(shard for shard in acquired if shard in self._failures)
        for shard, recovered in self._recovered(acquired, careful).items():
            recovered.notes = [*recovered.notes, *notes[shard]]
            self._start_host(shard, recovered)
        self._given.services.around.observer.shards_owned(len(self._hosted))
        self._stands_by = False
        self._given.phase("running" if self._hosted else "without its history")

    def _recovered(
        self, acquired: Mapping[Shard, tuple[str, Head]], careful: frozenset[Shard]
    ) -> Mapping[Shard, Recovered]:
        """By one scan for all; if that finds a hole, each by itself, and those that need it are given back."""
        recovery = Recovery(self._given.kinds, self._router, self._store, self._given.history)
        with contextlib.suppress(HistoryMissing):
            return recovery.run(acquired, careful)
        found: dict[Shard, Recovered] = {}
        for shard, held in acquired.items():
            recovery = Recovery(self._given.kinds, self._router, self._store, self._given.history)
            try:
                found |= recovery.run({shard: held}, careful)
            except HistoryMissing as missing:
                self._leave(shard, str(missing))
                # In nobody's name: this process goes on, and whoever has what is missing here may take it at once.
                self._store.retire("nobody", [(shard, held[0])])
                self._rest(shard, LONGEST_BACK_OFF_SECONDS)
        return found

    def _start_host(self, shard: Shard, recovered: Recovered) -> None:
        seat = Seat(recovered)
        self._hosted[shard] = (seat, Host.start(seat, self._given.services))
        self._reader.attach(seat)
        self._had.pop(shard, None)
        self._left.pop(shard, None)
        if shard in self._failures:
            self._failures[shard].error = ""

    # -- losing them ---------------------------------------------------------------------------------------------
    def _failed(self, seat: Seat, error: BaseException) -> None:
        held = self._hosted.get(seat.shard)
        if held is None or held[0] is not seat:
            return  # stopped by us meanwhile
        self._let_go(seat.shard)
        if isinstance(error, ShardLost):
            log.warning("shard lost to another owner", shard=str(seat.shard), owner=error.token)
        elif isinstance(error, ServerBehind):
            self._had[seat.shard] = seat.ledger.version
            self._lose_tail()
        else:
            self._restart_later(seat.shard, error)

    def _restart_later(self, shard: Shard, error: BaseException) -> None:
        now = time.monotonic()
        failures = self._failures.setdefault(shard, Failures())
        failures.count = 1 if now - failures.last > STEADY_SECONDS else failures.count + 1
        failures.last, failures.error = now, f"{type(error).__name__}: {error}"
        pause = min(FIRST_BACK_OFF_SECONDS * 2 ** (failures.count - 2), LONGEST_BACK_OFF_SECONDS)
        pause = 0.0 if failures.count == 1 else pause
        log.error("host failed", shard=str(shard), error=failures.error, again_in_seconds=pause, exc_info=error)
        self._given.services.around.observer.host_restarted(shard)
        self._rest(shard, pause)

    def _rest(self, shard: Shard, seconds: float) -> None:
        self._waiting.add(shard)
        self._given.services.around.timers.after(seconds, lambda: self._tell(Again(shard)))

    def _let_go(self, shard: Shard) -> None:
        seat, ref = self._hosted.pop(shard)
        seat.stopping.set()
        self._reader.detach(shard)
        ref.stop(block=True)
        self._given.services.around.observer.shards_owned(len(self._hosted))

    def _drop_what_others_took(self) -> None:
        for shard, head in self._heads(list(self._hosted)).items():
            if head.token != self._hosted[shard][0].ledger.token:
                log.warning("shard was taken over while the lease had lapsed", shard=str(shard), owner=head.token)
                self._let_go(shard)

    def _look_for_loss(self) -> None:
        """See whether the server, which was away, still knows all that it had acknowledged."""
        if self._reload:
            return  # it does not, and that is known
        # Ours first: the hosts go on meanwhile, and what they commit after this is no loss.
        ours = {shard: (seat.ledger.version, _epoch(seat.ledger.token)) for shard, (seat, _) in self._hosted.items()}
        read_to = self._reader.at or START
        behind = self._store.run() != self._run or (read_to > START and not self._knows(read_to))
        for shard, head in self._heads(list(ours)).items():
            version, epoch = ours[shard]
            behind |= head.version < version or 0 < _epoch(head.token) < epoch
        if behind:
            self._lose_tail()

    def _knows(self, at: Position) -> bool:
        """Whether the log has the entry at a position that was read from it, or has trimmed it since."""
        # Somebody else's entry may have the number 0, which none of ours has.
        before = Position(at.milliseconds, at.n - 1) if at.n else Position(at.milliseconds - 1, ABOVE_ALL_N)
        return bool(self._store.read_log(before, 1, at)) or at <= self._store.archived()[1]

    def _lose_tail(self) -> None:
        """Stop everything; the next tick begins anew with what the server has."""
        log.error("the server has lost a part of the log: loading everything again")
        for shard, (seat, _) in list(self._hosted.items()):
            self._had[shard] = seat.ledger.version
            self._let_go(shard)
        self._reader.stop()
        self._reload = True
        self._tell(Tick())

    def _begin_anew(self) -> None:
        self._given.phase("beginning")
        self._stands_by = False
        self._router = self._given.router()
        self._run = self._store.run()
        self._reader = self._new_reader()
        self._reload = False

    # -- time passes ---------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        if self._reload:
            self._begin_anew()
        self._given.services.around.observer.lease_valid(self._given.lease.valid())
        self._take_free()

    def _nudge_all(self) -> None:
        for seat, _ in self._hosted.values():
            seat.inbox.nudge()

    def _every(self, seconds: float, message: Tick | Upkeep) -> None:
        def ring() -> None:
            if self.actor_ref.is_alive():
                self._tell(message)
                self._every(seconds, message)

        self._given.services.around.timers.after(seconds, ring)

    def _retire(self) -> None:
        tokens = [(shard, seat.ledger.token) for shard, (seat, _) in self._hosted.items()]
        for seat, _ in self._hosted.values():
            seat.stopping.set()  # all at once: each may have to wait for a call that the server does not answer
        for shard in list(self._hosted):
            self._let_go(shard)
        self._reader.stop()
        self._given.lease.stop()
        try:
            self._store.retire(self._given.lease.process, tokens)
        except (StoreUnreachable, StoreBroken) as error:
            log.warning("ended without handing over: others wait for the lease to run out", error=str(error))
        self.stop()

    def _new_reader(self) -> Reader:
        reader = Reader(
            self._store,
            self._router,
            lambda: self._tell(ServerBack()),
            lambda error: self._tell(ReaderFailed(error)),
        )
        reader.start()
        return reader


def _epoch(token: str) -> int:
    return int(token.partition(":")[0] or 0)
