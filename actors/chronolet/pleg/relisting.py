"""Listings of the runtime, one after the other, and what is worth telling of each.

Comes in: the runtime's containers. Goes out: `signals.Relisted` with the details of what is new, changed or gone. Next:
`effects`. Answers to pkg/kubelet/pleg/generic.go (Relist, computeEvents, updateCache).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self

from chronolet.pleg import signals
from chronolet.ports import labels
from chronolet.ports.runtime import ContainerState, Refusal, Runtime

INSPECT_SECONDS = 10.0
"""How long one container's inspect may take."""
PATIENCE_SECONDS = 1.0
"""How long a listing waits for inspects: one that is stuck is told by a later listing, and stops nobody."""
_AT_ONCE = 4

_Inspection = Future[ContainerState | None]


class Relisting:
    """What earlier listings saw. `known` are ids that somebody knows of and that must be confirmed gone if they are."""

    def __init__(self, runtime: Runtime, node: str, known: Iterable[str] = ()) -> None:
        self._runtime = runtime
        self._labels = labels.of_node(node)
        self._told: dict[str, str] = dict.fromkeys(known, "")
        """The state last told of each container; empty where it has to be told anew."""
        self._owners: dict[str, labels.Owner] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspect")
        self._running: dict[str, _Inspection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def idle(self) -> bool:
        """Whether no inspect of an earlier listing is still under way."""
        return not self._running

    def distrust(self) -> None:
        """Notices may have been missed: tell everything anew."""
        self._told = dict.fromkeys(self._told, "")

    def relisted(self) -> signals.Relisted:
        """One listing. `Refusal` if there is none."""
        began_at = time.time_ns() // 1_000_000
        listed = self._listed()
        for container_id in self._worth_a_look(listed):
            if container_id not in self._running:
                self._running[container_id] = self._pool.submit(self._inspect, container_id)
        wait(self._running.values(), PATIENCE_SECONDS)
        return signals.Relisted(began_at=began_at, count=len(listed), seen=tuple(self._finished()))

    def _listed(self) -> Mapping[str, ContainerState]:
        """By id, without what bears our node's label but not the others: it is not ours."""
        found: dict[str, ContainerState] = {}
        for one in self._runtime.list(self._labels):
            owner = labels.read(one.labels)
            if owner is not None:
                found[one.id] = one
                self._owners[one.id] = owner
        return found

    def _worth_a_look(self, listed: Mapping[str, ContainerState]) -> list[str]:
        changed = [one.id for one in listed.values() if self._told.get(one.id, "") != one.state]
        return [*changed, *(known for known in self._told if known not in listed)]

    def _inspect(self, container_id: str) -> ContainerState | None:
        return self._runtime.inspect(container_id, timeout_seconds=INSPECT_SECONDS)

    def _finished(self) -> Iterator[signals.Seen]:
        for container_id, inspection in list(self._running.items()):
            if not inspection.done():
                continue
            del self._running[container_id]
            try:
                state = inspection.result()
            except Refusal:
                # Looked at again by the next listing: its state is still not the one that was told.
                continue
            yield self._seen(container_id, state)

    def _seen(self, container_id: str, state: ContainerState | None) -> signals.Seen:
        """What an inspect said, noted as told."""
        if state is None:
            self._told.pop(container_id, None)
            return _gone(container_id, self._owners.pop(container_id, _NOBODY))
        self._told[container_id] = state.state
        return _present(state, self._owners.get(container_id, _NOBODY))


_NOBODY = labels.Owner(pod="", uid="", container="", attempt=0)
"""Whose a container was that only the log knows of: the log knows that, too."""


def _gone(container_id: str, owner: labels.Owner) -> signals.Seen:
    return signals.Seen(
        pod=owner.pod,
        uid=owner.uid,
        container=owner.container,
        attempt=owner.attempt,
        id=container_id,
        state="removed",
    )


def _present(state: ContainerState, owner: labels.Owner) -> signals.Seen:
    dead = state.state == "exited"
    return signals.Seen(
        pod=owner.pod,
        uid=owner.uid,
        container=owner.container,
        attempt=owner.attempt,
        id=state.id,
        state=state.state,
        exit_code=state.exit_code if dead else 0,
        reason=_reason(state) if dead else "",
        started_at=state.started_at,
        finished_at=state.finished_at if dead else 0,
    )


def _reason(state: ContainerState) -> str:
    if state.oom_killed:
        return "OOMKilled"
    return "Error" if state.exit_code else "Completed"
