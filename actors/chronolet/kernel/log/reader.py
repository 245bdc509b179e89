"""Reads the node's log and the mailboxes of all shards hosted by this process, in one blocking call.

Input: log entries and mailbox messages. Output: inputs for the hosts, in order, with the position up to which the log
was read; notifications when the server can be reached again, and when the node's members may have changed. If the
server has lost entries or commands that were read, the reader stops delivering: a host that still has a lost message in
its inbox must not receive the message written in its place. A host with a full inbox is skipped: it receives no log
entries, so that it does not delay other hosts, and the skipped entries are read again when it has room. Next: `host`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from collections.abc import Set as AbstractSet

import structlog

from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.log.loss import lacks_what_was_read
from chronolet.kernel.step.input import Input
from chronolet.kernel.step.routing import Router
from chronolet.kernel.storage.store import Inputs, Store, StoreBroken, StoreUnreachable
from chronolet_schemas.envelope import START, Position
from chronolet_schemas.keys import Shard

COUNT = 500
BLOCK_MILLISECONDS = 5_000
SKIPPED_MILLISECONDS = 20
"""How long a read blocks while a host with a full inbox is skipped."""
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0

log = structlog.get_logger("chronolet.kernel")


class Reader:
    """Reads for all hosts of a process, until `stop` is called, a loss is found or an error occurs. Each read serves
    all hosts; each host has its own cursor.
    """

    def __init__(
        self,
        store: Store,
        router: Router,
        reconnected: Callable[[], None],
        failed: Callable[[Exception], None],
        members_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """The callbacks are called on the reader's thread. `reconnected`: the server can be reached again, or the
        reader has stopped because of a loss (`found_loss`). `failed`: the reader has stopped because of an error.
        `members_changed`: see `Keys.membership`.
        """
        self._store = store
        self._router = router
        self._reconnected = reconnected
        self._failed = failed
        self._members_changed = members_changed
        self._handles: dict[Shard, HostHandle] = {}
        self._at: Position | None = None
        self._furthest = START
        self.found_loss = False
        """Whether the reader stopped because the server lost messages that had already been read."""
        self._changes: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    @property
    def at(self) -> Position:
        """The latest position read for any host; START if there was no host yet."""
        return self._furthest

    def start(self) -> None:
        """Start reading. While there is no host, only changes of the members are read."""
        self._thread.start()

    def attach(self, handle: HostHandle) -> None:
        """Also read for this host, from the position where its recovery stopped."""
        self._change(lambda: self._admit(handle))

    def detach(self, shard: Shard) -> None:
        """Stop reading for a shard."""
        self._change(lambda: self._dismiss(shard))

    def use(self, router: Router) -> None:
        """Route by another layout from the next read on. No shard may be attached whose kind's count differs."""

        def change() -> None:
            self._router = router

        self._change(change)

    def stop(self) -> None:
        """Stop reading, and wait for the thread to end."""
        self._stopping.set()
        self._change(lambda: None)
        self._thread.join()

    # -- on the reader's thread ----------------------------------------------------------------------------------
    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:  # noqa: BLE001 - a process that reads nothing must not look alive
            self._failed(error)

    def _read(self) -> None:
        pause, away = FIRST_PAUSE_SECONDS, False
        while not self._stopping.is_set():
            self._apply_changes()
            ready = self._ready()
            if self._handles and not ready:
                self._stopping.wait(SKIPPED_MILLISECONDS / 1000)
                continue
            block = BLOCK_MILLISECONDS if len(ready) == len(self._handles) else SKIPPED_MILLISECONDS
            mail_after = {shard: handle.mail_to for shard, handle in self._handles.items()}
            try:
                # After an outage, do not block: a loss must be noticed immediately.
                inputs = self._store.wait(self._at, mail_after, COUNT, 0 if away else block, members=True)
                lost = (away or self._goes_back(inputs)) and self._has_lost()
            except (StoreUnreachable, StoreBroken) as error:
                if not away:
                    log.warning("store unreachable, reading paused", error=str(error))
                away = True
                self._stopping.wait(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
                continue
            self.found_loss = lost
            if away or lost:
                pause, away = FIRST_PAUSE_SECONDS, False
                self._reconnected()
            if lost:
                return
            self._deliver(inputs, ready)
            if inputs.members_changed:
                self._members_changed()

    def _goes_back(self, inputs: Inputs) -> bool:
        """Whether the first new entry's number is not above that of the last entry read: the log has lost its end and
        has grown again, or it has a foreign entry.
        """
        return bool(inputs.log) and self._at is not None and inputs.log[0].position.n <= self._at.n

    def _has_lost(self) -> bool:
        return lacks_what_was_read(self._store, self._furthest, self._handles.values())

    def _ready(self) -> set[Shard]:
        """Return the shards whose inboxes have room, and continue reading from the lowest cursor among them."""
        ready = {shard for shard, handle in self._handles.items() if handle.has_room}
        if ready:
            self._at = min(self._handles[shard].read_to for shard in ready)
        return ready

    def _deliver(self, inputs: Inputs, ready: AbstractSet[Shard]) -> None:
        found: dict[Shard, list[Input]] = {}
        mail_to: dict[Shard, Position] = {}
        for entry in inputs.log:
            for shard, item in self._router.route(entry, ready):
                if item.at > self._handles[shard].read_to:
                    found.setdefault(shard, []).append(item)
        for shard, mails in inputs.mail.items():
            if mails and shard in self._handles:
                mail_to[shard] = mails[-1].id
                found.setdefault(shard, []).extend(self._router.mail(shard, mail) for mail in mails)
        if inputs.log:
            self._at = inputs.log[-1].position
            self._furthest = max(self._furthest, self._at)
        if self._at is not None:
            for shard, handle in self._handles.items():
                read_to = self._at if shard in ready else handle.read_to
                handle.offer(found.get(shard, ()), read_to, mail_to.get(shard, START))

    # -- attaching and detaching hosts ---------------------------------------------------------------------------
    def _change(self, change: Callable[[], None]) -> None:
        with self._lock:
            self._changes.append(change)
        self._store.wake()

    def _apply_changes(self) -> None:
        with self._lock:
            changes, self._changes = self._changes, []
        for change in changes:
            change()

    def _admit(self, handle: HostHandle) -> None:
        # If this host is behind the others, reading restarts from its cursor; no host receives an entry twice.
        self._at = handle.read_to if self._at is None else min(self._at, handle.read_to)
        self._furthest = max(self._furthest, handle.read_to)
        self._handles[handle.shard] = handle

    def _dismiss(self, shard: Shard) -> None:
        self._handles.pop(shard, None)
        if not self._handles:
            self._at = None
