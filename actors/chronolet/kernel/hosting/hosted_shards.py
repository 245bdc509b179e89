"""The table of the shards that this process hosts.

Input: recovered shards to start hosts for, shards to stop. Output: running hosts with their handles; the tokens that
the lease checks with each renewal. Used only on the supervisor's thread. Next: `supervisor`, `host_starts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pykka

from chronolet.kernel.host.host import Host, Services
from chronolet.kernel.host.host_handle import HostHandle, Recovered
from chronolet.kernel.ownership.lease import Lease
from chronolet_schemas.keys import Shard


class HostedShards:
    """The hosts of one process, by shard."""

    def __init__(self, services: Services, lease: Lease) -> None:
        self._services = services
        self._lease = lease
        self._hosts: dict[Shard, tuple[HostHandle, pykka.ActorRef[Host]]] = {}

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[Shard]:
        """Iterate over a copy, so that shards may be stopped meanwhile."""
        return iter(list(self._hosts))

    def __contains__(self, shard: Shard) -> bool:
        return shard in self._hosts

    def handles(self) -> Mapping[Shard, HostHandle]:
        """Return the handles of all hosts."""
        return {shard: handle for shard, (handle, _) in self._hosts.items()}

    def is_current(self, handle: HostHandle) -> bool:
        """Whether this handle's host has not been stopped or replaced."""
        return self._hosts.get(handle.shard, (None,))[0] is handle

    def start(self, recovered: Recovered) -> HostHandle:
        """Start a host for a recovered shard."""
        handle = HostHandle(recovered, self._services.shared.timing.behind_entries)
        self._hosts[handle.shard] = (handle, Host.start(handle, self._services))
        self._share_tokens()
        return handle

    def stop(self, shard: Shard) -> None:
        """Stop a host and wait until it has ended. Its effects are cancelled."""
        handle, ref = self._hosts.pop(shard)
        handle.stopping.set()
        self._share_tokens()
        ref.stop(block=True)
        observer = self._services.shared.observer
        observer.shards_owned(len(self._hosts))
        observer.shard_lost(shard, tuple(handle.ledger.states))

    def abandon(self) -> None:
        """Stop all hosts, without waiting for them to end."""
        for handle, ref in self._hosts.values():
            handle.stopping.set()
            ref.stop(block=False)

    def nudge(self) -> None:
        """Wake all hosts, so that they take a due snapshot or step."""
        for handle, _ in self._hosts.values():
            handle.inbox.nudge()

    def _share_tokens(self) -> None:
        """Pass the tokens of the hosted shards to the lease, which checks them with its next renewal."""
        self._lease.tokens = {shard: handle.ledger.token for shard, (handle, _) in self._hosts.items()}
