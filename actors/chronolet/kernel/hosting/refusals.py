"""Kinds that a process must not host at present, and the shards of such kinds that it still has to hand over.

Input: the process's `Refuses` function; shards whose hosts were stopped because their kind is refused. Output: the
reasons by kind; released shards. Next: `supervisor`, which asks on each tick, and before it acquires a shard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chronolet.kernel.storage.store import NOBODY, Store
from chronolet_schemas.keys import Shard

Refuses = Callable[[str], Mapping[str, str]]
"""A function that takes the log's run and returns the kinds that this process must not host now, each with the reason
in one line. A kind may be refused at one call and allowed at the next. The function is called often, on the
supervisor's thread; only the first call for a run may wait, for at most a few seconds. May raise StoreUnreachable.
"""


class HostingRefusals:
    """The refusals of one process."""

    def __init__(self, refuses: Refuses | None, store: Store) -> None:
        """`refuses`: None if the process may host all its kinds."""
        self._refuses = refuses
        self._store = store
        self._stopped: dict[Shard, str] = {}

    def now(self, run: str) -> Mapping[str, str]:
        """Return the refused kinds, each with the reason. `run`: the log's run."""
        return self._refuses(run) if self._refuses is not None else {}

    def hand_over(self, stopped: Mapping[Shard, str]) -> None:
        """Release these shards, given with their tokens, whose hosts have stopped. If the store is unreachable, the
        next call releases them: until then this live process keeps other processes from acquiring them.
        """
        self._stopped |= stopped
        if self._stopped:
            self._store.retire(NOBODY, list(self._stopped.items()))
            self._stopped.clear()
