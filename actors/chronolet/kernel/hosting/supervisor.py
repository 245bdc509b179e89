"""The supervisor: takes shards, recovers them, starts their hosts, and starts them again when they fail.

Comes in: failures of hosts, the server's return, the lease's return, a tick a second and some looks in between. Goes
out: hosts at work. A restart takes a new epoch and steps one message at a time for a while. When the server has lost a
tail, everything is loaded again. What fails here ends the process: whatever runs it starts it again. Next: `process`.

A process without a shard stands by: it takes what becomes free.

    a shard:  free -> acquired -> recovered -> hosted -> (failed -> acquired ... | lost -> free)
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, assert_never

import pykka
import structlog

from chronolet.kernel.hosting.failures import Failures
from chronolet.kernel.hosting.host import Host, Services
from chronolet.kernel.hosting.host_handle import HostHandle, Recovered
from chronolet.kernel.hosting.notices import (
    Again,
    HostFailed,
    LeaseRegained,
    Look,
    Notice,
    ReaderFailed,
    Retire,
    ServerBack,
    Tick,
    Upkeep,
)
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.log_end import LogMemory, complain
from chronolet.kernel.log.loss import is_behind, known, lacks_what_was_read
from chronolet.kernel.log.reader import Reader
from chronolet.kernel.log.recovery import History, Recovery
from chronolet.kernel.ownership.claims import Claim, Claims
from chronolet.kernel.ownership.lease import Lease
from chronolet.kernel.ownership.waiting_mail import let_others_read, let_read, with_mail
from chronolet.kernel.step.routing import Router
from chronolet.kernel.step.shard_writer import ServerBehind, ShardLost
from chronolet.kernel.storage.store import HistoryMissing, StoreBroken, StoreUnreachable
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

LOOKS_IN_RENEWAL = 4
UPKEEP_SECONDS = 60.0
HISTORY_AGAIN_SECONDS = 30.0
"""After so long a shard is taken again whose history was not here: somebody may have brought the archive files."""

log = structlog.get_logger("chronolet.kernel")

Adopt = Callable[[Router, str, kernel.LogLost | None], str]
"""Given the router, the log's run and what that log has lost, before the first shards are taken: sends what is to be
decided before anything else. Empty when that is done; else why it has to wait, and then it is asked again.
"""


class SupervisorContext(NamedTuple):
    """What the supervisor is given by the process."""

    kinds: Mapping[str, Kind[Any]]
    services: Services
    lease: Lease
    history: History
    claims: Claims
    router: Callable[[], Router]
    """Begins the log where there is none, and knows the number of shards that it fixed."""
    phase: Callable[[str], None]
    """Told the name of each phase of a start."""
    memory: LogMemory
    """Of the log's end."""
    adopt: Adopt | None = None


class Supervisor(pykka.ThreadingActor):
    """Owns the hosts of a process."""

    use_daemon_thread = True

    def __init__(self, given: SupervisorContext, fatal: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._given = given
        self._fatal = fatal
        self._store = given.services.store
        self._hosted: dict[Shard, tuple[HostHandle, pykka.ActorRef[Host]]] = {}
        self._claims = given.claims
        self._failures = Failures()
        self._waiting: set[Shard] = set()
        self._stands_by = False
        self._retired = False
        self._had: dict[Shard, int] = {}
        self._reload = False
        self._said = ""
        """The last complaint about the server."""
        self._adopted_run = ""
        self._said_of_adoption = ""
        self._router = given.router()
        self._run = self._store.run()
        self._lost = self._log_lost()
        self._untold = self._lost
        """The same, until a host tells of it."""
        self._reader = self._new_reader()

    def on_start(self) -> None:
        """Begin with the first tick at once."""
        self._tell(Tick())
        self._every(self._given.lease.renewal_seconds, Tick())
        self._every(self._given.lease.renewal_seconds / LOOKS_IN_RENEWAL, Look())
        self._every(UPKEEP_SECONDS, Upkeep())

    def on_failure(
        self,
        _exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """End the process; its hosts must not go on without a supervisor."""
        for handle, ref in self._hosted.values():
            handle.stopping.set()
            ref.stop(block=False)
        self._fatal(exception_value or RuntimeError("the supervisor failed"))

    def on_receive(self, message: Notice) -> None:
        """Handle one notice; while the server is away it is kept for later."""
        if self._retired:
            return  # it came before the end, and would take again what was just handed over
        try:
            self._handle(message)
            self._said = ""
        except (StoreUnreachable, StoreBroken) as error:
            if str(error) != self._said:  # once, however long it takes
                self._said = str(error)
                log.warning("waiting for the server", error=self._said, about=type(message).__name__)
            if not isinstance(message, Tick | Look | Upkeep):  # those come again by themselves
                pause = self._given.lease.renewal_seconds / 2
                self._given.services.shared.timers.after(pause, lambda: self._tell(message))

    def _tell(self, message: Notice) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # timers and reader may find it dead, and must live
            self.actor_ref.tell(message)

    def _handle(self, message: Notice) -> None:
        match message:
            case Tick() | Look() | Upkeep():
                self._time_has_passed(message)
            case HostFailed():
                self._failed(message.handle, message.error)
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
            case _:
                assert_never(message)

    # -- taking shards -------------------------------------------------------------------------------------------
    def _take_free(self) -> None:
        ours = {shard for kind in self._given.kinds for shard in self._router.shards_of(kind)}
        wanted = ours - self._hosted.keys() - self._waiting
        if wanted:
            self._take(sorted(wanted, key=str))

    def _take(self, shards: Sequence[Shard]) -> None:
        if self._reload:
            return  # the next tick takes them, once there is a reader again
        if self._store.run() != self._run:
            self._lose_tail()  # shards of a server that was emptied have no log to go on with
            return
        if not self._adopted():
            return  # the next tick tries again
        claims = self._claims.take(shards)
        if claims:
            self._ask_ahead({shard.kind for shard in claims})
            self._host(claims)
        elif not (self._hosted or self._waiting or self._stands_by):
            self._stands_by = True
            self._given.phase("standing by")
            log.info("no free shard, standing by")

    def _adopted(self) -> bool:
        """Whether what runs was adopted by this run of the log, or need not be."""
        if self._given.adopt is None or self._has_adopted():  # the former for the type checker
            return True
        self._given.phase("adopting")
        why = self._given.adopt(self._router, self._run, self._lost)
        if why and why != self._said_of_adoption:  # once, however long it takes
            self._said_of_adoption = why
            log.warning("waiting to adopt what runs", error=why)
        if why:
            return False
        self._adopted_run = self._run
        self._given.phase("acquiring")
        return True

    def _has_adopted(self) -> bool:
        return self._given.adopt is None or self._adopted_run == self._run

    def _host(self, claims: Mapping[Shard, Claim]) -> None:
        self._given.phase("recovering")
        first = with_mail(self._store, claims)
        self._start_hosts(first)
        let_read([self._hosted[shard][0] for shard in first if shard in self._hosted])
        let_others_read(self._store, self._router.of_other_kinds())
        self._start_hosts({shard: claim for shard, claim in claims.items() if shard not in first})
        self._given.services.shared.observer.shards_owned(len(self._hosted))
        self._stands_by = False
        self._given.phase("running" if self._hosted else "without its history")

    def _ask_ahead(self, kinds: Iterable[str]) -> None:
        """The world takes about as long to answer as recovery takes: both at the same time."""
        for name in kinds:
            if (ahead := self._given.kinds[name].ahead) is not None:
                ahead()

    def _start_hosts(self, claims: Mapping[Shard, Claim]) -> None:
        recovered_shards = self._recovered(claims) if claims else {}
        for shard in sorted(recovered_shards, key=self._precedence):
            recovered = recovered_shards[shard]
            recovered.notes = [*recovered.notes, *self._notes(shard, claims[shard])]
            recovered.unclean = claims[shard].former is not None
            self._start_host(shard, recovered)

    def _recovered(self, claims: Mapping[Shard, Claim]) -> Mapping[Shard, Recovered]:
        """By one scan for all; if that finds a hole, each by itself, and those that need it are given back."""
        with contextlib.suppress(HistoryMissing):
            return self._recover(claims)
        found: dict[Shard, Recovered] = {}
        for shard, claim in claims.items():
            try:
                found |= self._recover({shard: claim})
            except HistoryMissing as missing:
                self._claims.leave(shard, str(missing))
                # In nobody's name: this process goes on, and whoever has what is missing here may take it at once.
                self._store.retire("nobody", [(shard, claim.head.token)])
                self._rest(shard, HISTORY_AGAIN_SECONDS)
        return found

    def _recover(self, claims: Mapping[Shard, Claim]) -> Mapping[Shard, Recovered]:
        recovery = Recovery(self._given.kinds, self._router, self._store, self._given.history)
        acquired = {shard: (claim.head.token, claim.head) for shard, claim in claims.items()}
        begun = time.monotonic()
        recovered = recovery.run(acquired, self._failures.of(claims))
        self._given.services.shared.observer.recovered(len(recovered), recovery.read, time.monotonic() - begun)
        return recovered

    def _notes(self, shard: Shard, claim: Claim) -> list[Event]:
        """What the new host tells first."""
        had, found = self._had.get(shard, 0), claim.head.version
        lost = kernel.TailLost(had_version=had, found_version=found) if had > found else None
        whole = self._untold if self._given.kinds[shard.kind].watches_clock else None
        return [note for note in (claim.former, whole, lost, self._failures.note(shard)) if note is not None]

    def _precedence(self, shard: Shard) -> tuple[int, str]:
        return self._given.kinds[shard.kind].precedence, str(shard)

    def _start_host(self, shard: Shard, recovered: Recovered) -> None:
        handle = HostHandle(recovered)
        self._hosted[shard] = (handle, Host.start(handle, self._given.services))
        self._reader.attach(handle)
        self._had.pop(shard, None)
        self._claims.no_longer_left(shard)
        self._failures.told(shard)
        if self._given.kinds[shard.kind].watches_clock:
            self._untold = None

    # -- losing them ---------------------------------------------------------------------------------------------
    def _failed(self, handle: HostHandle, error: BaseException) -> None:
        held = self._hosted.get(handle.shard)
        if held is None or held[0] is not handle:
            return  # stopped by us meanwhile
        self._let_go(handle.shard)
        if isinstance(error, ShardLost):
            log.warning("shard lost to another owner", shard=str(handle.shard), owner=error.token)
        elif isinstance(error, ServerBehind):
            self._had[handle.shard] = handle.ledger.version
            self._lose_tail()
        else:
            self._restart_later(handle.shard, error)

    def _restart_later(self, shard: Shard, error: BaseException) -> None:
        said = f"{type(error).__name__}: {error}"
        pause = self._failures.add(shard, said, time.monotonic())
        log.error("host failed", shard=str(shard), error=said, again_in_seconds=pause, exc_info=error)
        self._given.services.shared.observer.host_restarted(shard)
        self._rest(shard, pause)

    def _rest(self, shard: Shard, seconds: float) -> None:
        self._waiting.add(shard)
        self._given.services.shared.timers.after(seconds, lambda: self._tell(Again(shard)))

    def _let_go(self, shard: Shard) -> None:
        handle, ref = self._hosted.pop(shard)
        handle.stopping.set()
        self._reader.detach(shard)
        ref.stop(block=True)
        observer = self._given.services.shared.observer
        observer.shards_owned(len(self._hosted))
        observer.shard_lost(shard, tuple(handle.ledger.states))

    def _drop_what_others_took(self) -> None:
        for shard, head in self._claims.heads(list(self._hosted)).items():
            if head.token != self._hosted[shard][0].ledger.token:
                log.warning("shard was taken over while the lease had lapsed", shard=str(shard), owner=head.token)
                self._let_go(shard)

    def _look_for_loss(self) -> None:
        """See whether the server, which was away, still knows all that it had acknowledged."""
        if self._reload:
            return  # it does not, and that is known
        handles = [handle for handle, _ in self._hosted.values()]
        ours = known(handle.ledger for handle in handles)
        behind = self._reader.found_loss or self._store.run() != self._run
        behind = behind or lacks_what_was_read(self._store, self._reader.at, handles)
        heads = self._claims.heads(list(ours))
        if behind or any(is_behind(head, ours[shard]) for shard, head in heads.items()):
            self._lose_tail()

    def _lose_tail(self) -> None:
        """Stop everything; the next tick begins anew with what the server has."""
        log.error("the server has lost a part of the log: loading everything again")
        self._remember(handle for handle, _ in self._hosted.values())
        for shard, (handle, _) in list(self._hosted.items()):
            self._had[shard] = handle.ledger.version
            self._let_go(shard)
        self._reader.stop()
        self._reload = True
        self._tell(Tick())

    def _begin_anew(self) -> None:
        self._given.phase("beginning")
        self._stands_by = False
        self._router = self._given.router()
        self._run = self._store.run()
        if (lost := self._log_lost()) is not None:
            self._lost = self._untold = lost
            self._adopted_run = ""
        self._reader = self._new_reader()
        self._reload = False

    def _log_lost(self) -> kernel.LogLost | None:
        lost = self._given.memory.lost(self._store, self._run)
        if lost is not None:
            complain(lost)
        return lost

    def _remember(self, handles: Iterable[HostHandle]) -> None:
        """Store the last log position that the reader and these hosts know."""
        known_to_be = [handle.ledger.at for handle in handles]
        self._given.memory.keep(self._run, max([*known_to_be, self._reader.at]))

    # -- time passes ---------------------------------------------------------------------------------------------
    def _time_has_passed(self, message: Tick | Look | Upkeep) -> None:
        match message:
            case Tick():
                self._tick()
            case Look():
                if self._has_adopted():  # the runtime is not to be asked so often
                    self._take_free()
            case Upkeep():
                self._look_for_loss()
                self._nudge_all()
                self._store.forget_dead()
                self._claims.sweep()

    def _tick(self) -> None:
        valid = self._given.lease.valid()
        self._given.services.shared.observer.lease_valid(valid)
        if self._reload:
            self._begin_anew()
        elif valid and self._replaced():
            self._lose_tail()
            return
        elif self._hosted:  # whoever is to tell of a loss has begun
            self._remember(handle for handle, _ in self._hosted.values())
        self._take_free()

    def _replaced(self) -> bool:
        """Whether the server has another log: an idle process has no step that it would refuse."""
        try:
            return self._store.run() != self._run
        except (StoreUnreachable, StoreBroken):
            return False  # lease and reader say so

    def _nudge_all(self) -> None:
        for handle, _ in self._hosted.values():
            handle.inbox.nudge()

    def _every(self, seconds: float, message: Tick | Look | Upkeep) -> None:
        def ring() -> None:
            if self.actor_ref.is_alive():
                self._tell(message)
                self._every(seconds, message)

        self._given.services.shared.timers.after(seconds, ring)

    def _retire(self) -> None:
        self._retired = True
        tokens = [(shard, handle.ledger.token) for shard, (handle, _) in self._hosted.items()]
        handles = [handle for handle, _ in self._hosted.values()]
        for handle in handles:
            handle.stopping.set()  # all at once: each may have to wait for a call that the server does not answer
        for shard in list(self._hosted):
            self._let_go(shard)
        self._remember(handles)  # with the steps that were on their way
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
