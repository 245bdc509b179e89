"""Detects, for one process, that the log has lost data: checks its run, its end and the progress of hosted shards.

Input: the store, the remembered end of the log, the hosted shards, the last position read. Output: whether the server
has lost data that it had acknowledged. Used only on the supervisor's thread. Next: `supervisor`, which then reloads
everything.
"""

from __future__ import annotations

from collections.abc import Iterable

from chronolet.kernel.host.host_handle import HostHandle
from chronolet.kernel.log.log_end import LogMemory, log_loss
from chronolet.kernel.log.loss import is_behind, known, lacks_what_was_read
from chronolet.kernel.log.reader import Reader
from chronolet.kernel.ownership.claims import Claims
from chronolet.kernel.storage.store import Store
from chronolet_schemas import kernel


class LogWatch:
    """The run of the log that this process works on, and what the log has lost."""

    def __init__(self, store: Store, claims: Claims, memory: LogMemory) -> None:
        self._store = store
        self._claims = claims
        self._memory = memory
        self.run = ""
        self.lost: kernel.LogLost | None = None
        """What the log has lost compared with its end as remembered in the state folder; None if nothing."""

    def load(self) -> bool:
        """Read the run of the log, and compare the log's end with the remembered one. Returns whether a loss was found
        that was not known before.
        """
        self.run = self._store.run()
        lost = self._memory.lost(self._store, self.run)
        if lost is None:
            return False
        log_loss(lost)
        self.lost = lost
        return True

    def was_replaced(self) -> bool:
        """Whether the server now has another log. An idle process needs this check, because it commits no step that the
        server could refuse.
        """
        return self._store.run() != self.run

    def lacks_data(self, handles: Iterable[HostHandle], reader: Reader) -> bool:
        """Whether the server lacks data that these hosts or the reader have already received from it."""
        handles = list(handles)
        ours = known(handle.ledger for handle in handles)
        if reader.found_loss or self.was_replaced() or lacks_what_was_read(self._store, reader.at, handles):
            return True
        heads = self._claims.heads(list(ours))
        return any(is_behind(head, ours[shard]) for shard, head in heads.items())

    def remember(self, handles: Iterable[HostHandle], reader: Reader) -> None:
        """Remember the highest log position known to the reader or to one of these hosts."""
        positions = [handle.ledger.at for handle in handles]
        self._memory.keep(self.run, max([*positions, reader.at]))
