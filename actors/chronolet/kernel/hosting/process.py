"""A process of the node: how it starts, what it shares among its hosts, and how it ends.

Comes in: kinds with their workers, a store, where locks lie. Goes out: a running `Process`. Next: `supervisor`.

    checking -> beginning -> leasing -> acquiring -> adopting -> recovering -> running -> retired
    without a shard: standing by, or without its history
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pykka
import structlog
from msgspec import Struct, field

from chronolet.kernel.clock import Clock
from chronolet.kernel.effects.runner import RunnerDependencies
from chronolet.kernel.effects.timers import Timers
from chronolet.kernel.effects.turns import Workshop
from chronolet.kernel.faults import Faults, NoFaults
from chronolet.kernel.hosting.host import Services
from chronolet.kernel.hosting.host_handle import Seat
from chronolet.kernel.hosting.notices import HostFailed, LeaseRegained, Retire
from chronolet.kernel.hosting.supervisor import Adopt, Supervisor, Surrounding
from chronolet.kernel.kind import Kind
from chronolet.kernel.log.log_end import LogMemory
from chronolet.kernel.log.recovery import History
from chronolet.kernel.observer import Observer
from chronolet.kernel.ownership.claims import Claims
from chronolet.kernel.ownership.lease import TTL_MILLISECONDS, Lease, LifeLock
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.store import Store, StoreBroken, StoreUnreachable
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import Record
from chronolet_schemas.keys import Shard

CHECK_PAUSE_SECONDS = 1.0

log = structlog.get_logger("chronolet.kernel")


class Setup(Struct, frozen=True, kw_only=True):
    """What a process is made of."""

    node: str
    store: Store
    kinds: Mapping[str, Kind[Any]]
    shards: Mapping[str, int]
    """Of every kind of the node, hosted here or not; only a new log takes it."""
    history: History | None = None
    """Archive and stream as one; None reads the stream only."""
    locks: Path | None = None
    log_end: Path | None = None
    """The file that remembers how far the log went; None remembers nothing."""
    address: str = ""
    faults: Faults = field(default_factory=NoFaults)
    observer: Observer = field(default_factory=Observer)
    adopt: Adopt | None = None
    """What a new log has to be told before its shards are taken."""
    clock: Clock = field(default_factory=Clock)
    workers: int = 16
    lease_milliseconds: int = TTL_MILLISECONDS


class Process:
    """One process that hosts some kinds of a node. `start`, then `wait`, then `retire`."""

    def __init__(self, setup: Setup) -> None:
        self.id = str(uuid.uuid4())
        self.phase = "checking"
        self.run = ""
        """Of the log that this process works on; another one once the server was emptied."""
        self.error: BaseException | None = None
        self._setup = setup
        self._over = threading.Event()
        self._timers = Timers()
        info = f"{','.join(sorted(setup.kinds))} {setup.address}".strip()
        self.lease = Lease(setup.store, self.id, info, ttl_milliseconds=setup.lease_milliseconds)
        self._claims = Claims(setup.store, self.id, setup.locks, lease_milliseconds=setup.lease_milliseconds)
        self._lock = LifeLock(setup.locks, self.id) if setup.locks else None
        self._memory = LogMemory(setup.node, setup.log_end, setup.clock.now)
        if time := self._memory.time():
            setup.clock.resume(time)
        self._supervisor: pykka.ActorRef[Supervisor] | None = None

    def start(self) -> None:
        """Go through the phases up to `running`.

        Waits while the server can heal; StoreUnreachable(healing=False) if it cannot serve as it is.
        """
        self._patiently(self._check)
        self.phase = "leasing"
        self._patiently(lambda: self.lease.start(lambda: self._tell(LeaseRegained())))
        self.phase = "acquiring"
        self._patiently(self._supervise)

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Until the process is over; True if it is. `error` says why, None after `retire`."""
        return self._over.wait(timeout_seconds)

    def give_up(self) -> None:
        """End `start`'s waiting for the server, and `wait`."""
        self._over.set()

    def left_alone(self) -> Mapping[Shard, str]:
        """Shards of this process's kinds that nobody hosts because something is wrong with them, and what."""
        return self._claims.left

    def retire(self) -> None:
        """Stop cleanly: cancel effects, hand the shards over at once."""
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

    # -- inside --------------------------------------------------------------------------------------------------
    def _drop_lease(self) -> None:
        """The end came before there was a supervisor, whose business this is otherwise."""
        self.lease.stop()
        with contextlib.suppress(StoreUnreachable, StoreBroken):  # then it runs out by itself
            self._setup.store.retire(self.id, ())

    def _supervise(self) -> None:
        self._supervisor = Supervisor.start(self._surrounding(), self._fatal)
        self._memory.start()

    def _check(self) -> None:
        for warning in self._setup.store.check():
            log.warning("about the server", warning=warning)

    def _patiently(self, call: Callable[[], None]) -> None:
        said = ""
        while not self._over.is_set():
            try:
                call()
            except StoreUnreachable as error:
                if not error.healing:
                    raise
                if str(error) != said:  # once, however long it takes
                    said = str(error)
                    log.warning("waiting for the server", phase=self.phase, error=said)
                self._over.wait(CHECK_PAUSE_SECONDS)
            else:
                return

    def _surrounding(self) -> Surrounding:
        setup = self._setup
        around = RunnerDependencies(
            workshop=Workshop(self._timers.after, setup.workers),
            timers=self._timers,
            permit=self.lease,
            faults=setup.faults,
            observer=setup.observer,
            deliver=lambda _: None,
        )
        services = Services(setup.store, setup.clock, around, lambda: uuid.uuid4().hex, self._host_failed)
        return Surrounding(
            kinds=setup.kinds,
            services=services,
            lease=self.lease,
            history=setup.history or setup.store.scan,
            claims=self._claims,
            router=self._begin,
            phase=self._enter,
            memory=self._memory,
            adopt=setup.adopt,
        )

    def _begin(self) -> Router:
        setup = self._setup
        run = uuid.uuid4().hex
        started = kernel.LogStarted(run=run, node=setup.node, shards=dict(setup.shards))
        type_name = registry.type_of(kernel.LogStarted)
        record = Record(type_name, f"node/{setup.node}", "", f"process/{self.id}", "", codec.encode(started))
        begun = setup.store.begin(run, setup.shards, record)
        self.run = begun.run
        if begun.new:
            self._memory.began(begun.run)
            setup.clock.resume(0)
        return Router(setup.kinds, begun.shards)

    def _enter(self, phase: str) -> None:
        self.phase = phase

    def _tell(self, message: Any) -> None:
        if self._supervisor is not None:
            with contextlib.suppress(pykka.ActorDeadError):  # lease and hosts may find it dead, and must live
                self._supervisor.tell(message)

    def _host_failed(self, seat: Seat, error: BaseException) -> None:
        self._tell(HostFailed(seat, error))

    def _fatal(self, error: BaseException) -> None:
        self.error = error
        self._over.set()
