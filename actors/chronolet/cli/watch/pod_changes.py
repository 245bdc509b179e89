"""Follows pods as they change: current states first, then one log entry at a time.

Input: a session. Output: Pods in API form, each as soon as an entry changes it. Next: `wait` and
`get --watch`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from chronolet.cli.get.api_form import api_pod
from chronolet.cli.session import Session
from chronolet.history.derived.wanted import of_kinds
from chronolet.history.entries import entries
from chronolet.history.state import Moment
from chronolet.history.when import Located
from chronolet.kernel.folding import folded
from chronolet_schemas import codec
from chronolet_schemas.envelope import Entry, Event
from chronolet_schemas.times import time_of

Object = dict[str, Any]

_BLOCK_MILLISECONDS = 5_000
"""The longest time that one read waits for new entries; it returns as soon as there is one."""
_PAGE = 1_000


class Change(NamedTuple):
    """A pod before and after a log entry; `before` is None if the pod is new."""

    key: str
    before: Object | None
    after: Object | None
    """The pod after the entry; None if it is gone."""


class Pods:
    """The node's pods by namespace/name, as they were after the last entry read."""

    def __init__(self, node: Session) -> None:
        self._node = node
        (kind,) = node.services.kinds(("pod",))
        self._decider = kind.decider
        moment = node.state("pod")
        self.position = moment.position
        self._states = dict(moment.states["pod"])
        self.now = {key: pod for key in sorted(self._states) if (pod := self._shown(key))}

    def past_changes(self) -> Iterator[Change]:
        """Yield the changes since the session's moment that the log already has. With each, the session's moment is
        that of the change; afterwards, it is the present. Yield nothing if the session's moment is the present.
        """
        if self._node.at is None:
            return
        wanted = of_kinds({"pod": None})
        for entry in entries(self._node.store, self._node.archive, self.position, wanted=wanted, prefer_archive=True):
            self._node.at = Located(entry.position, time_of(entry))
            yield from self._read(entry)
        self._node.at = None

    def changes(self, seconds: float | None = None) -> Iterator[Change]:
        """Yield every change from now on, for `seconds`, or endlessly if that is None."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while (milliseconds := _left(deadline)) > 0:
            for entry in self._node.store.wait(self.position, {}, _PAGE, milliseconds).log:
                yield from self._read(entry)

    def _read(self, entry: Entry) -> Iterator[Change]:
        self.position = entry.position
        kind, _, key = entry.entity.partition("/")
        if kind == "pod":
            yield from self._changed(key, entry)

    def _changed(self, key: str, entry: Entry) -> Iterator[Change]:
        before = self.now.get(key)
        self._fold(key, entry)
        after = self._shown(key)
        if after is None:
            self.now.pop(key, None)
        else:
            self.now[key] = after
        if _bare(before) != _bare(after):
            yield Change(key, before, after)

    def _fold(self, key: str, entry: Entry) -> None:
        try:
            event = codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable:
            return  # the agent's hosts skip it as well
        state = folded(self._decider, self._states.get(key), event)
        if state is None:
            self._states.pop(key, None)
        else:
            self._states[key] = state

    def _shown(self, key: str) -> Object | None:
        state = self._states.get(key)
        if state is None or not state.uid:
            return None
        namespace, _, name = key.partition("/")
        moment = Moment(self.position, {"pod": self._states})
        return api_pod(moment, self._node.settings.node, namespace, name)


def _left(deadline: float | None) -> int:
    """Return the milliseconds to wait for the next entry; 0 once the deadline has passed."""
    if deadline is None:
        return _BLOCK_MILLISECONDS
    return max(0, min(_BLOCK_MILLISECONDS, round((deadline - time.monotonic()) * 1_000)))


def _bare(pod: Object | None) -> Object | None:
    """Return the pod without its resource version, which every entry changes."""
    if pod is None:
        return None
    metadata = {name: value for name, value in pod["metadata"].items() if name != "resourceVersion"}
    return {**pod, "metadata": metadata}
