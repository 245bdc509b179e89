"""Builds the guard that keeps a process from touching a node that lives elsewhere, with its adapters.

Input: settings, the store, the archive. Output: `Sited`. Next: `wiring`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import NamedTuple

from chronolet.adapters.docker_runtime import DockerRuntime
from chronolet.adapters.docker_runtime.identity import EngineIdentities
from chronolet.adapters.machine.machine_id import read_machine_id
from chronolet.history.archives import NodeArchive
from chronolet.kernel.storage.redis.sites import RedisSites
from chronolet.kernel.storage.store import Store
from chronolet.node.settings.table import Settings
from chronolet.node.site import containers
from chronolet.node.site.guard import SiteGuard, Sources
from chronolet.node.site.judgement import touching
from chronolet.ports.runtime.runtime import Refusal


class Sited(NamedTuple):
    """The guard of a process, the kinds that it guards, and the connections to close at the end."""

    guard: SiteGuard
    touching: frozenset[str]
    identities: EngineIdentities
    unguarded: DockerRuntime
    """Lists an engine's containers before it is known whether the engine is the node's."""

    def look_ahead(self) -> None:
        """Request the engine's identity on a thread, because the reply takes as long as other parts of a start."""
        if self.touching:
            threading.Thread(target=self._ask, name="engine identity", daemon=True).start()

    def _ask(self) -> None:
        with contextlib.suppress(Refusal):  # the guard repeats the request
            self.identities.now()

    def close(self) -> None:
        """Stop the guard and close its connections."""
        self.guard.stop()
        self.identities.close()
        self.unguarded.close()


def sited(settings: Settings, store: Store, archive: NodeArchive, process: Callable[[], str]) -> Sited:
    """Build the guard and its adapters. `process` returns this process's id."""
    node, identities, unguarded = settings.node, EngineIdentities(settings.docker), DockerRuntime(settings.docker)
    guarded = touching(settings.actors, manifest_path=settings.pod_manifest_path, archive=settings.archive)
    sources = Sources(
        sites=RedisSites(settings.redis_url, node),
        machine_id=lambda: read_machine_id(settings.machine_id_file),
        engine=identities.now,
        stranger=(lambda: containers.stranger(node, store, archive, unguarded)) if "pleg" in settings.actors else None,
        process=process,
    )
    return Sited(SiteGuard(node, guarded, sources), guarded, identities, unguarded)
