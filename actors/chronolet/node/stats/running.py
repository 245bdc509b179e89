"""Tracks which containers of this node are running, without extra calls to the runtime.

Input: pleg's relists, and the containers that this process creates, starts and removes, both reported by
`measured_runtime`. Output: `ContainerState`s. Next: `sampler`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping

from chronolet.ports.runtime.runtime import ContainerSpec, ContainerState, SandboxSpec


class Running:
    """The running containers. Usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._created: dict[str, tuple[float, ContainerState]] = {}
        self._running: dict[str, ContainerState] = {}
        self._started_at: dict[str, float] = {}
        self._listed_at: float | None = None

    def listed(self, found: Iterable[ContainerState], began_at: float) -> None:
        """Apply a listing of all the node's containers that began at `began_at` (`time.monotonic`)."""
        listed = {one.id: one for one in found}
        running = {one.id: one for one in listed.values() if one.state == "running"}
        with self._lock:
            later = {one: at for one, at in self._started_at.items() if at >= began_at}
            kept = {one: self._running[one] for one in later if one in self._running}
            self._started_at = later
            self._running = {**kept, **running}
            self._created = {
                one: (at, state)
                for one, (at, state) in self._created.items()
                if one not in running and (one in listed or at >= began_at)
            }
            self._listed_at = began_at

    def created(self, container_id: str, spec: SandboxSpec | ContainerSpec) -> None:
        """Record a container that this process created and has not started yet."""
        state = ContainerState(
            id=container_id,
            name=spec.name,
            labels=spec.labels,
            state="running",
            image=spec.image,
            created_at=time.time_ns() // 1_000_000,
            sandbox_id="" if isinstance(spec, SandboxSpec) else spec.sandbox_id,
            host_network=isinstance(spec, SandboxSpec) and spec.host_network,
            detailed=False,
        )
        with self._lock:
            self._created[container_id] = (time.monotonic(), state)

    def started(self, container_id: str) -> None:
        """Record that a container is running. A container that another process created is unknown until the next
        listing.
        """
        with self._lock:
            _, state = self._created.pop(container_id, (0.0, None))
            if state is not None:
                self._running[container_id] = state
                self._started_at[container_id] = time.monotonic()

    def removed(self, container_id: str) -> None:
        """Forget a removed container."""
        with self._lock:
            for known in (self._created, self._running, self._started_at):
                known.pop(container_id, None)

    def now(self) -> Mapping[str, ContainerState]:
        """Return the running containers by id. Some of them may have exited since."""
        with self._lock:
            return dict(self._running)

    def age_seconds(self) -> float:
        """Return the age of the last listing in seconds; infinite before the first one."""
        with self._lock:
            return float("inf") if self._listed_at is None else time.monotonic() - self._listed_at
