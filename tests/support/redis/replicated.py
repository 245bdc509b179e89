"""A redis-server with a replica that can take its place, and proxies that are then redirected to the replica.

Input: a folder for the links' sockets. Output: `Replicated`, whose `promote` kills the primary. Replication is
asynchronous: the replica lacks what the primary has not yet sent, usually nothing. Next: the tests of processes that
share a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis

from tests.support.ports import free_port
from tests.support.redis.link import Link
from tests.support.redis.server import PrivateRedis, RedisOptions, private_redis
from tests.support.scratch import wait_until

_OPTIONS = {"clock": True, "appendfsync": "everysec", "more": ("--repl-diskless-sync-delay", "0")}


class _Member:
    """One redis-server, and a client of it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        options = RedisOptions(port=free_port(), **_OPTIONS)  # type: ignore[arg-type]
        self.server = self._stack.enter_context(private_redis(options))
        self.client = self.server.client()

    def is_linked(self) -> bool:
        """Whether this server is a replica that is connected to its primary and has its data."""
        return bool(self.client.info("replication")["master_link_status"] == "up")

    def destroy(self) -> None:
        self._stack.close()


class Replicated:
    """A primary and its replica. `link` returns links that lead to the present primary."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._links: dict[str, Link] = {}
        self._primary = _Member()
        self._replica = self._new_replica()

    @property
    def primary(self) -> PrivateRedis:
        return self._primary.server

    def link(self, name: str) -> Link:
        """Return the link of this name, which leads to the present primary."""
        if name not in self._links:
            self._links[name] = Link(self._folder / f"link-{name}", self.primary.socket)
        return self._links[name]

    def client(self) -> redis.Redis:
        """Return a client of the present primary."""
        return self._primary.client

    def promote(self) -> None:
        """Kill the primary, make its replica the primary, redirect all links there, and start another replica."""
        wait_until(self._replica.is_linked, "the replica to be in sync")
        former, self._primary = self._primary, self._replica
        former.server.kill9()
        # Until the replica finds its link closed, it may still have to read what the primary has sent.
        wait_until(lambda: not self._primary.is_linked(), "the replica to notice the death of its primary")
        self._primary.client.replicaof("NO", "ONE")
        for link in self._links.values():
            link.redirect(self.primary.socket)
        former.destroy()
        self._replica = self._new_replica()

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._replica.destroy()
        self._primary.destroy()

    def _new_replica(self) -> _Member:
        made = _Member()
        made.client.replicaof("127.0.0.1", self.primary.options.port)
        return made


@contextmanager
def replicated(folder: Path) -> Iterator[Replicated]:
    """Run a primary and a replica while the block runs. The links are sockets in `folder`."""
    servers = Replicated(folder)
    try:
        yield servers
    finally:
        servers.close()
