"""Relists the runtime's containers and inspects the pods that changed since the last listing.

Input: the runtime's containers. Output: `signals.Relisted` with the details of all pods in which a container is new,
changed or gone. Next: `relist`. Source: pkg/kubelet/pleg/generic.go (Relist, computeEvents, updateCache).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

from chronolet.pleg import signals
from chronolet.pleg.containers.inspection import Glance, to_inspect, without_running
from chronolet.pleg.containers.observations import NOBODY, inspected
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime

INSPECT_SECONDS = 10.0
"""Time-out for inspecting one container."""
PATIENCE_SECONDS = 1.0
"""How long a listing waits for its inspects. A slower inspect is reported by a later listing and does not delay the
others."""
MAXIMUM_AGE_SECONDS = 1.0
"""Maximum age of a finished early listing. An older one, which waited while other messages were decided, is not
used."""
_INSPECT_THREADS = 4

_Inspection = Future[ContainerState | None]


class Listed(NamedTuple):
    """A listing in progress. `began_at`: milliseconds since the epoch; `began`: seconds of the monotonic clock."""

    began_at: int
    began: float
    found: Future[Sequence[ContainerState]]


class Ahead:
    """An early listing, started while pleg is being recovered: listing the ids needs no state.

    The inspects follow after recovery.
    """

    def __init__(self, runtime: Runtime, node: str, maximum_age_seconds: float = MAXIMUM_AGE_SECONDS) -> None:
        self._runtime = runtime
        self._labels = labels.of_node(node)
        self._maximum_age_seconds = maximum_age_seconds
        self._listed: Listed | None = None

    def begin(self) -> None:
        """Start an early listing, which replaces any earlier one that was not taken."""
        listed = self._listed = Listed(_now(), time.monotonic(), Future())
        threading.Thread(target=self._list, args=(listed.found,), name="listing ahead", daemon=True).start()

    def take(self) -> Listed | None:
        """Return the early listing, only once; None if it is older than `maximum_age_seconds`.

        A listing in progress is returned at any age, because two concurrent listings could finish in the wrong order.
        """
        listed, self._listed = self._listed, None
        if listed is None or (listed.found.done() and time.monotonic() - listed.began >= self._maximum_age_seconds):
            return None
        return listed

    def _list(self, found: Future[Sequence[ContainerState]]) -> None:
        try:
            found.set_result(self._runtime.list(self._labels))
        except Exception as error:  # noqa: BLE001 - raised where the listing is awaited
            found.set_exception(error)


class Relisting:
    """A series of listings, each compared with those before it. `known`: ids in the log; if a container is gone, its
    removal must be confirmed.
    """

    def __init__(
        self, runtime: Runtime, node: str, known: Iterable[str] = (), patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._runtime = runtime
        self._labels = labels.of_node(node)
        self._patience_seconds = patience_seconds
        self._reported: dict[str, Glance] = {one: Glance(uid="", state="") for one in known}
        self._owners: dict[str, labels.Owner] = {}
        self._unread: dict[str, signals.Unread] = {}
        self._pool = ThreadPoolExecutor(_INSPECT_THREADS, thread_name_prefix="inspect")
        self._running: dict[str, _Inspection] = {}
        self._distrusted = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def idle(self) -> bool:
        """Whether all inspects of earlier listings have finished."""
        return not self._running

    def distrust(self) -> None:
        """Report everything again in the next listing, because notices may have been missed."""
        self._reported = {known: Glance(uid=one.uid, state="") for known, one in self._reported.items()}
        self._distrusted = True

    def look_up(self, ids: Iterable[str]) -> None:
        """Check these ids in the next listing: so far only notices have named them, and the notice of a removal is lost
        if the engine is killed.
        """
        for one in ids:
            self._reported.setdefault(one, Glance(uid="", state=""))

    def relisted(
        self, early: Callable[[signals.Relisted], None] | None = None, ahead: Listed | None = None
    ) -> signals.Relisted:
        """Make one listing, or take the one begun `ahead`. Raises `Refusal`.

        When everything is reported again, `early` first receives the containers that are not running: with many
        containers, inspecting the running ones takes longer than everything else a restart waits for.
        """
        began_at, found = self._list(ahead)
        listed = self._listed(found)
        ids = to_inspect(self._reported, listed, self._unread)
        self._unread.clear()
        stuck = frozenset(self._running)
        if early is not None and self._distrusted and (urgent := without_running(ids, listed)):
            observed, unread = self._inspected(urgent, stuck)
            early(
                signals.Relisted(began_at=began_at, count=len(listed), observed=observed, unread=unread, partial=True)
            )
            ids = [one for one in ids if one not in frozenset(urgent)]
        self._distrusted = False
        observed, unread = self._inspected(ids, stuck)
        return signals.Relisted(began_at=began_at, count=len(listed), observed=observed, unread=unread)

    def _list(self, ahead: Listed | None) -> tuple[int, Sequence[ContainerState]]:
        """Return when the listing began, and its containers. If the early listing failed, make a new one."""
        if ahead is not None:
            with suppress(Refusal):
                return ahead.began_at, ahead.found.result()
        return _now(), self._runtime.list(self._labels)

    def _inspected(
        self, ids: Sequence[str], stuck: Collection[str]
    ) -> tuple[Sequence[signals.ContainerObserved], Sequence[signals.Unread]]:
        """Inspect `ids`; return the results of these and of pending inspects, and the unreadable pods.

        `stuck`: ids whose inspect began before this listing.
        """
        for container_id in ids:
            if container_id not in self._running:
                self._running[container_id] = self._pool.submit(self._inspect, container_id)
        wait(self._running.values(), self._patience_seconds)
        observed = tuple(self._finished())
        for container_id in self._running.keys() & stuck:
            self._unreadable(container_id, "inspect does not return")
        return observed, tuple(self._unread.values())

    def _listed(self, containers: Iterable[ContainerState]) -> Mapping[str, Glance]:
        """Return the pods' containers by id, and record their owners. A container that has the node's label but lacks
        the other labels belongs to no pod.
        """
        found: dict[str, Glance] = {}
        for one in containers:
            owner = labels.read(one.labels)
            if owner is not None:
                found[one.id] = Glance(uid=owner.uid, state=one.state)
                self._owners[one.id] = owner
        return found

    def _inspect(self, container_id: str) -> ContainerState | None:
        return self._runtime.inspect(container_id, timeout_seconds=INSPECT_SECONDS)

    def _finished(self) -> Iterator[signals.ContainerObserved]:
        for container_id, inspection in list(self._running.items()):
            if not inspection.done():
                continue
            del self._running[container_id]
            try:
                state = inspection.result()
            except Refusal as refusal:
                # The next listing inspects the whole pod again.
                self._unreadable(container_id, str(refusal))
                continue
            yield self._observed(container_id, state)

    def _unreadable(self, container_id: str, error: str) -> None:
        owner = self._owners.get(container_id)
        if owner is not None:
            text = f"container {container_id}: {error}"
            self._unread[owner.uid] = signals.Unread(pod=owner.pod, uid=owner.uid, error=text)

    def _observed(self, container_id: str, state: ContainerState | None) -> signals.ContainerObserved:
        """Convert an inspect's result and record it as reported."""
        if state is None:
            self._reported.pop(container_id, None)
            owner = self._owners.pop(container_id, NOBODY)
        else:
            owner = self._owners.get(container_id, NOBODY)
            self._reported[container_id] = Glance(uid=owner.uid, state=state.state)
        return inspected(container_id, state, owner)


def _now() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
