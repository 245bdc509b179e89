"""Listings of the runtime, one after the other, and what is worth telling of each.

Comes in: the runtime's containers. Goes out: `signals.Relisted` with the details of all pods in which something is new,
changed or gone. Next:
`effects`. Answers to pkg/kubelet/pleg/generic.go (Relist, computeEvents, updateCache).
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
from chronolet.pleg.looking import Glance, without_running, worth_a_look
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal, Runtime

INSPECT_SECONDS = 10.0
"""How long one container's inspect may take."""
PATIENCE_SECONDS = 1.0
"""How long a listing waits for inspects: one that is stuck is told by a later listing, and stops nobody."""
AHEAD_SECONDS = 1.0
"""A listing that began longer ago and is there, because others had to be decided first, is made anew."""
_AT_ONCE = 4

_Inspection = Future[ContainerState | None]


class Listed(NamedTuple):
    """A listing under way. Milliseconds since the epoch, and seconds of the monotonic clock, at its begin."""

    began_at: int
    began: float
    found: Future[Sequence[ContainerState]]


class Ahead:
    """The listing that a process begins while its pleg is being recovered: which containers there are needs no state.

    What is said of them is read by inspects, after recovery.
    """

    def __init__(self, runtime: Runtime, node: str) -> None:
        self._runtime = runtime
        self._labels = labels.of_node(node)
        self._listed: Listed | None = None

    def begin(self) -> None:
        """In the place of one that nobody took."""
        listed = self._listed = Listed(_now(), time.monotonic(), Future())
        threading.Thread(target=self._list, args=(listed.found,), name="listing ahead", daemon=True).start()

    def take(self) -> Listed | None:
        """The listing, once, unless it has become old. One that is still under way is waited for, however old it is:
        two at a time could end in the wrong order.
        """
        listed, self._listed = self._listed, None
        if listed is None or (listed.found.done() and time.monotonic() - listed.began >= AHEAD_SECONDS):
            return None
        return listed

    def _list(self, found: Future[Sequence[ContainerState]]) -> None:
        try:
            found.set_result(self._runtime.list(self._labels))
        except Exception as error:  # noqa: BLE001 - raised where the listing is awaited
            found.set_exception(error)


class Relisting:
    """What earlier listings saw. `known` are ids that somebody knows of and that must be confirmed gone if they are."""

    def __init__(self, runtime: Runtime, node: str, known: Iterable[str] = ()) -> None:
        self._runtime = runtime
        self._labels = labels.of_node(node)
        self._told: dict[str, Glance] = {one: Glance(uid="", state="") for one in known}
        self._owners: dict[str, labels.Owner] = {}
        self._unread: dict[str, signals.Unread] = {}
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspect")
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
        """Whether no inspect of an earlier listing is still under way."""
        return not self._running

    def distrust(self) -> None:
        """Notices may have been missed: tell everything anew."""
        self._told = {known: Glance(uid=one.uid, state="") for known, one in self._told.items()}
        self._distrusted = True

    def heard_of(self, ids: Iterable[str]) -> None:
        """Look these ids up in the next listing: only notices named them so far, and the notice of a removal is lost
        when the engine is killed.
        """
        for one in ids:
            self._told.setdefault(one, Glance(uid="", state=""))

    def relisted(
        self, early: Callable[[signals.Relisted], None] | None = None, ahead: Listed | None = None
    ) -> signals.Relisted:
        """One listing, the one begun `ahead` if there is. `Refusal` if there is none.

        Where everything is told anew, `early` is told first of what does not run: with many containers the inspects of
        those that run as they should take longer than all else that a restart waits for.
        """
        began_at, found = self._list(ahead)
        listed = self._listed(found)
        ids = worth_a_look(self._told, listed, self._unread)
        self._unread.clear()
        stuck = frozenset(self._running)
        if early is not None and self._distrusted and (urgent := without_running(ids, listed)):
            seen, unread = self._inspected(urgent, stuck)
            early(signals.Relisted(began_at=began_at, count=len(listed), seen=seen, unread=unread, partial=True))
            ids = [one for one in ids if one not in frozenset(urgent)]
        self._distrusted = False
        seen, unread = self._inspected(ids, stuck)
        return signals.Relisted(began_at=began_at, count=len(listed), seen=seen, unread=unread)

    def _list(self, ahead: Listed | None) -> tuple[int, Sequence[ContainerState]]:
        """When it began, and what is there. What was refused ahead may be granted by now."""
        if ahead is not None:
            with suppress(Refusal):
                return ahead.began_at, ahead.found.result()
        return _now(), self._runtime.list(self._labels)

    def _inspected(
        self, ids: Sequence[str], stuck: Collection[str]
    ) -> tuple[Sequence[signals.Seen], Sequence[signals.Unread]]:
        """Of these and of what was under way. An inspect of `stuck` was under way before this listing."""
        for container_id in ids:
            if container_id not in self._running:
                self._running[container_id] = self._pool.submit(self._inspect, container_id)
        wait(self._running.values(), PATIENCE_SECONDS)
        seen = tuple(self._finished())
        for container_id in self._running.keys() & stuck:
            self._unreadable(container_id, "its inspect does not come to an end")
        return seen, tuple(self._unread.values())

    def _listed(self, containers: Iterable[ContainerState]) -> Mapping[str, Glance]:
        """By id, without what bears our node's label but not the others: it is not ours."""
        found: dict[str, Glance] = {}
        for one in containers:
            owner = labels.read(one.labels)
            if owner is not None:
                found[one.id] = Glance(uid=owner.uid, state=one.state)
                self._owners[one.id] = owner
        return found

    def _inspect(self, container_id: str) -> ContainerState | None:
        return self._runtime.inspect(container_id, timeout_seconds=INSPECT_SECONDS)

    def _finished(self) -> Iterator[signals.Seen]:
        for container_id, inspection in list(self._running.items()):
            if not inspection.done():
                continue
            del self._running[container_id]
            try:
                state = inspection.result()
            except Refusal as refusal:
                # Looked at again by the next listing, with all of its pod.
                self._unreadable(container_id, str(refusal))
                continue
            yield self._seen(container_id, state)

    def _unreadable(self, container_id: str, error: str) -> None:
        owner = self._owners.get(container_id)
        if owner is not None:
            said = f"container {container_id}: {error}"
            self._unread[owner.uid] = signals.Unread(pod=owner.pod, uid=owner.uid, error=said)

    def _seen(self, container_id: str, state: ContainerState | None) -> signals.Seen:
        """What an inspect said, noted as told."""
        if state is None:
            self._told.pop(container_id, None)
            return _gone(container_id, self._owners.pop(container_id, _NOBODY))
        owner = self._owners.get(container_id, _NOBODY)
        self._told[container_id] = Glance(uid=owner.uid, state=state.state)
        return _present(state, owner)


_NOBODY = labels.Owner(pod="", uid="", container="", attempt=0)
"""Whose a container was that only the log knows of: the log knows that, too."""


def _now() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


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
