"""The names of all Redis keys of one node; they are defined only here. `chronolet_actors_1`, a function on the server,
has a copy of some.

All keys of a node share one hash tag, so that a single Redis Function may access them and a Redis Cluster keeps them
together.
"""

from __future__ import annotations

import functools
import zlib

import msgspec
from msgspec import Struct

NODES = "chronolet:nodes"


class Shard(msgspec.Struct, frozen=True, order=True):
    """The unit of ownership: `pod/3`, or `pleg` for a kind with a single shard (`index` is None then).

    Used as a key for every log entry; hashing a Struct costs a tenth of hashing a dataclass.
    """

    kind: str
    index: int | None = None

    def __str__(self) -> str:
        return self.kind if self.index is None else f"{self.kind}/{self.index}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse the text of `str(shard)`."""
        kind, _, index = text.partition("/")
        return cls(kind, int(index) if index else None)


def shards_of(kind: str, count: int) -> tuple[Shard, ...]:
    """Return all shards of a kind. If there is only one, its name has no number."""
    return (Shard(kind),) if count == 1 else tuple(Shard(kind, index) for index in range(count))


@functools.lru_cache(maxsize=8192)
def shard_for(kind: str, count: int, key: str) -> Shard:
    """Return the shard that owns the entity `key` of a kind with `count` shards."""
    return Shard(kind) if count == 1 else Shard(kind, zlib.crc32(key.encode()) % count)


class Keys(Struct, frozen=True):
    """The key names of one node."""

    node: str

    @property
    def prefix(self) -> str:
        return f"chronolet:{{{self.node}}}"

    @property
    def log(self) -> str:
        return f"{self.prefix}:log"

    @property
    def meta(self) -> str:
        return f"{self.prefix}:meta"

    @property
    def dead(self) -> str:
        return f"{self.prefix}:dead"

    @property
    def probe_results(self) -> str:
        return f"{self.prefix}:probe_results"

    @property
    def probe_segments(self) -> str:
        """The key of the stream of segments: the raw outcomes of probes that are not archived yet (docs/adr/0056)."""
        return f"{self.prefix}:probe_segments"

    @property
    def kube_events(self) -> str:
        return f"{self.prefix}:kube_events"

    @property
    def refusals(self) -> str:
        """The key of the hash in which processes publish which kinds they may not host, and why. It only informs."""
        return f"{self.prefix}:refusals"

    @property
    def membership(self) -> str:
        """The key of the stream that wakes the node's processes. It gets an entry when a member or a request to drain
        changes, or a shard is released. Entries have no content, and only the newest is kept.
        """
        return f"{self.prefix}:membership"

    def mailbox(self, shard: Shard) -> str:
        return f"{self.prefix}:mailbox:{shard}"

    def requests(self, shard: Shard) -> str:
        """The key of the sorted set of the newest request ids sent to a mailbox, which makes sending a command
        idempotent.
        """
        return f"{self.prefix}:requests:{shard}"

    def shard(self, shard: Shard) -> str:
        return f"{self.prefix}:shard:{shard}"

    def snapshot(self, shard: Shard) -> str:
        return f"{self.prefix}:snapshot:{shard}"

    def handover(self, shard: Shard) -> str:
        """The key of the notes that the last owner of a moved shard left for the next one; it expires."""
        return f"{self.prefix}:handover:{shard}"

    def alive(self, process: str) -> str:
        return f"{self.prefix}:alive:{process}"
