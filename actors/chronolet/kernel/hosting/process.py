"""One process of the node: its startup phases, the services that its hosts share, and its shutdown.

Input: kinds with their workers, a store, the lock folder. Output: a running `Process`. Next: `supervisor`.

    checking -> joining -> leasing -> acquiring [-> adopting -> acquiring] -> recovering -> running -> retired

In brackets: only in a process that adopts what is already running. A process without shards is in phase `standing by`
(no free shard), `refused` (it must not host some of its kinds, and hosts none of the others), or `without its history`
(the shards' archive files are missing). After the server has lost data, the
phase is `beginning`, then the process continues as above.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pykka
import structlog
from msgspec import Struct, field

from chronolet.kernel.clock import Clock
from chronolet.kernel.effects.lanes import Lanes
from chronolet.kernel.effects.slot import RunnerDependencies
from chronolet.kernel.effects.timers import Timers
from chronolet.kernel.faults import Faults, NoFaults
from chronolet.kernel.host.host import Services
from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.hosting.adoption import Adopt
from chronolet.kernel.hosting.notices import HostFailed, HostLeft, LeaseRegained, Retire
from chronolet.kernel.hosting.refusals import Refuses
from chronolet.kernel.hosting.supervisor import Supervisor, SupervisorContext
from chronolet.kernel.kind import Kind
from chronolet.kernel.layout.changes import LayoutChanges
from chronolet.kernel.layout.preparation import record_of
from chronolet.kernel.log.log_end import LogMemory
from chronolet.kernel.log.recovery import History
from chronolet.kernel.observer import Observer
from chronolet.kernel.ownership.claims import Claims
from chronolet.kernel.ownership.lease import TTL_MILLISECONDS, Lease
from chronolet.kernel.ownership.life_lock import LifeLock
from chronolet.kernel.ownership.membership import Membership
from chronolet.kernel.ownership.sharing import Sharing
from chronolet.kernel.ownership.watch import CounterWatch
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.store import Store, StoreBroken, StoreUnreachable
from chronolet.kernel.timing import Timing
from chronolet_schemas import kernel
from chronolet_schemas.keys import Shard

CHECK_PAUSE_SECONDS = 1.0
BEAT_SECONDS = 5.0
"""Interval at which the thread of the timers proves that it runs."""

log = structlog.get_logger("chronolet.kernel")


class Setup(Struct, frozen=True, kw_only=True):
    """The configuration of a process."""

    node: str
    store: Store
    kinds: Mapping[str, Kind[Any]]
    shards: Mapping[str, int]
    """Shard count of each kind of the node, whether hosted here or not. Used only to begin a new log, and to add a kind
    of this process to a log that does not have it.
    """
    chosen_shards: Mapping[str, int] = {}
    """The part of `shards` that the operator has chosen. A log that has other counts keeps them; this is logged."""
    history: History | None = None
    """Reads archive files and stream as one history. If None, only the stream is read."""
    locks: Path | None = None
    """Folder of the life locks. If None, there are no locks."""
    log_end: Path | None = None
    """File that stores the position of the log's end. If None, it is not stored."""
    address: str = ""
    faults: Faults = field(default_factory=NoFaults)
    observer: Observer = field(default_factory=Observer)
    name: str = ""
    """The process's name, which stays the same when it is restarted. If empty, a unique one is generated."""
    host: str = ""
    """The name of the machine, for people."""
    adopt: Adopt | None = None
    """Called before the first shards of a log are acquired, to adopt what is already running."""
    describe: Callable[[str], kernel.ProcessStarted] | None = None
    """Returns the description of the process with this id, which is recorded before it decides anything."""
    refuses: Refuses | None = None
    """Returns the kinds that this process must not host now. If None, it may host all."""
    clock: Clock = field(default_factory=Clock)
    workers: int = 16
    lease_milliseconds: int = TTL_MILLISECONDS
    timing: Timing = field(default_factory=Timing)


class Process:
    """One process that hosts some kinds of a node. Call `start`, then `wait`, then `retire`."""

    def __init__(self, setup: Setup) -> None:
        instance = uuid.uuid4().hex
        self.id = setup.name or str(uuid.uuid4())
        self.phase = "checking"
        self.run = ""
        """Run of the log that this process works on. It changes if the server is emptied and a new log begins."""
        self.error: BaseException | None = None
        self._setup = setup
        self._over = threading.Event()
        self._timers = Timers()
        self._beat_at = 0.0
        self._beat()
        info = f"{','.join(sorted(setup.kinds))} {setup.address}".strip()
        self.lease = Lease(setup.store, self.id, info, self._timers, ttl_milliseconds=setup.lease_milliseconds)
        watch = CounterWatch(setup.lease_milliseconds / 1000)
        self._claims = Claims(setup.store, self.id, setup.locks, watch, lambda: self._sharing.instances)
        self._lock = LifeLock(setup.locks, self.id, instance) if setup.locks else None
        self._membership = Membership(
            setup.store,
            self.id,
            instance=instance,
            host=setup.host,
            lock=self._lock,
            lease_milliseconds=setup.lease_milliseconds,
        )
        self._sharing = Sharing(
            setup.store, self._membership, setup.locks, watch=watch, lease_milliseconds=setup.lease_milliseconds
        )
        self._memory = LogMemory(setup.node, setup.log_end, setup.clock.now)
        if time := self._memory.time():
            setup.clock.resume(time)
        self._supervisor: pykka.ActorRef[Supervisor] | None = None

    def start(self) -> None:
        """Check the server, join the node under the process's name, acquire the lease and start the supervisor, which
        goes through the remaining phases.

        Retries while the server may recover by itself and `stop_waiting` has not been called. Once the server is
        checked, retries invalid data, too, as a running process does: it delays work until an operator repairs it.
        Raises StoreBroken if the check finds invalid data, StoreUnreachable(healing=False) if the operator must change
        a setting, and NameTaken if another process has the name.
        """
        self._retried(self._check)
        self.phase = "joining"
        self._retried(self._join)
        self.phase = "leasing"
        self._retried(lambda: self.lease.start(lambda: self._tell(LeaseRegained())))
        self.phase = "acquiring"
        self._retried(self._supervise)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the process has ended or `stop_waiting` is called, for at most `timeout_seconds`. Returns False
        after a time-out. `error` is the reason why the process ended; None after `retire` or `stop_waiting`.
        """
        return self._over.wait(timeout_seconds)

    def stop_waiting(self) -> None:
        """Make `start` stop retrying and `wait` return."""
        self._over.set()

    def quarantined(self) -> Mapping[Shard, str]:
        """Return the quarantined shards of this process's kinds, each with the reason. No process hosts them."""
        return self._claims.quarantined

    def stalled_threads(self, seconds: float) -> tuple[str, ...]:
        """Return the names of this process's own threads that have not run for `seconds`: without its timers or its
        lease, a process never decides again what it has to do. An outage of the server stalls neither.
        """
        now = time.monotonic()
        ages = {"timers": now - self._beat_at, "lease": self.lease.idle_seconds()}
        return tuple(name for name, age in ages.items() if age > seconds)

    def retire(self) -> None:
        """Stop cleanly. If other processes take part, hand over the shards to them, else cancel effects and release
        the shards.
        """
        if self._supervisor is not None:
            self._tell(Retire())
            self._supervisor.actor_stopped.wait()
        elif self.lease.answered():
            self._drop_lease()
        self._memory.stop()
        self.phase = "retired"
        self.lease.stop()
        self._timers.stop()
        if self._lock is not None:
            self._lock.release()
        self._over.set()

    def seconds_to_retire(self) -> float:
        """Return how long handing over the shards may take on shutdown; 0 if no other process takes part."""
        return 0.0 if self._sharing.alone else self._setup.timing.handover_seconds

    # -- inside --------------------------------------------------------------------------------------------------
    def _beat(self) -> None:
        self._beat_at = time.monotonic()
        self._timers.after(BEAT_SECONDS, self._beat)

    def _drop_lease(self) -> None:
        """Release the lease in place of the supervisor, which has not been started."""
        self.lease.stop()
        with contextlib.suppress(StoreUnreachable, StoreBroken):  # the lease then expires by itself
            self._setup.store.retire(self.id, ())

    def _join(self) -> None:
        self.lease.count_from(self._membership.join(self._over.wait))

    def _supervise(self) -> None:
        self._supervisor = Supervisor.start(self._context(), self._fatal)
        self._memory.start()

    def _check(self) -> None:
        for warning in self._setup.store.check():
            log.warning("server settings", warning=warning)

    def _retried(self, call: Callable[[], None]) -> None:
        logged = ""
        while not self._over.is_set():
            try:
                call()
            except (StoreUnreachable, StoreBroken) as error:
                if not (error.healing if isinstance(error, StoreUnreachable) else self.phase != "checking"):
                    raise
                if str(error) != logged:  # log an error once, however long it lasts
                    logged = str(error)
                    log.warning("waiting for the server", phase=self.phase, error=logged)
                self._over.wait(CHECK_PAUSE_SECONDS)
            else:
                return

    def _context(self) -> SupervisorContext:
        setup = self._setup
        history = setup.history or setup.store.scan
        shared = RunnerDependencies(
            lanes=Lanes(self._timers.after, setup.workers),
            timers=self._timers,
            permit=self.lease,
            faults=setup.faults,
            observer=setup.observer,
            timing=setup.timing,
            deliver=lambda _: None,
        )
        services = Services(
            setup.store, setup.clock, shared, lambda: uuid.uuid4().hex, self._host_failed, self._host_left
        )
        return SupervisorContext(
            kinds=setup.kinds,
            services=services,
            lease=self.lease,
            history=history,
            claims=self._claims,
            sharing=self._sharing,
            router=self._begin,
            describe=self._describe,
            changes=LayoutChanges(
                setup.store,
                setup.kinds,
                self._claims,
                history,
                node=setup.node,
                process=self.id,
                faults=setup.faults,
                patience_seconds=setup.timing.reshard_patience_seconds,
            ),
            phase=self._enter,
            memory=self._memory,
            locks=setup.locks,
            adopt=setup.adopt,
            refuses=setup.refuses,
        )

    def _begin(self) -> Router:
        setup = self._setup
        run = uuid.uuid4().hex
        started = kernel.LogStarted(run=run, node=setup.node, shards=dict(setup.shards))
        entity, actor = f"node/{setup.node}", f"process/{self.id}"
        begun = setup.store.begin(run, setup.shards, record_of(started, entity, actor))
        self.run = begun.run
        if begun.new:
            self._memory.began(begun.run)
            setup.clock.resume(0)
        counts = dict(begun.shards)
        for kind, count in setup.chosen_shards.items():
            if counts.get(kind, count) != count:
                remedy = f"chronolet shards {kind}={count}"
                log.warning("shard count not used: the log has another", kind=kind, log=counts[kind], remedy=remedy)
        for kind in sorted(setup.kinds.keys() & setup.shards.keys() - counts.keys()):
            added = kernel.KindAdded(kind=kind, shards=setup.shards[kind])
            counts[kind] = setup.store.add_kind(kind, setup.shards[kind], record_of(added, entity, actor))
            log.info("kind added to the log", kind=kind, shards=counts[kind])
        return Router(setup.kinds, counts)

    def _describe(self) -> None:
        setup = self._setup
        if setup.describe is not None:
            record = record_of(setup.describe(self.id), f"node/{setup.node}", f"process/{self.id}")
            setup.store.record(self.run, record)

    def _enter(self, phase: str) -> None:
        self.phase = phase

    def _tell(self, message: Any) -> None:
        if self._supervisor is not None:
            with contextlib.suppress(pykka.ActorDeadError):  # must not fail the lease or host that calls this
                self._supervisor.tell(message)

    def _host_failed(self, handle: HostHandle, error: BaseException) -> None:
        self._tell(HostFailed(handle, error))

    def _host_left(self, handle: HostHandle) -> None:
        self._tell(HostLeft(handle))

    def _fatal(self, error: BaseException) -> None:
        self.error = error
        self._over.set()
