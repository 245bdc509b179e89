"""A node's log on a private Redis, in which no site is recorded yet. Next: the fixture `log`."""

from chronolet.kernel.storage.redis.sites import RedisSites
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet_schemas import codec, kernel, registry
from chronolet_schemas.envelope import START, Record
from chronolet_schemas.keys import Shard

NODE, RUN = "n", "run1"


class Log:
    """The node's store and the record of its site. The constructor begins the log."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = RedisStore(url, NODE)
        self.sites = RedisSites(url, NODE)
        self.store.check()
        self.begin(RUN)

    def begin(self, run: str) -> None:
        shards = {"pod": 1, "pleg": 1}
        started = codec.encode(kernel.LogStarted(run=run, node=NODE, shards=shards))
        name = registry.type_of(kernel.LogStarted)
        self.store.begin(run, shards, Record(name, f"node/{NODE}", "", "process/x", "", started))

    def recorded(self) -> list[kernel.SiteRecorded]:
        """Return the log's events about the site."""
        name = registry.type_of(kernel.SiteRecorded)
        return [
            codec.decode(one.type, one.data, kernel.SiteRecorded) for one in self.store.scan(START) if one.type == name
        ]

    def acquire(self, shard: Shard, process: str) -> str:
        """Make the process the owner of the shard; return its fencing token."""
        token = self.store.heads([shard])[shard].token
        self.store.acquire(shard, token, process, registry.SCHEMA)
        return self.store.heads([shard])[shard].token

    def close(self) -> None:
        self.store.close()
        self.sites.close()
