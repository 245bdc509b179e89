"""A node's log as a test follows it: entries are decoded, folded, and waited for.

Input: a redis-server's URL and a node's name. Output: entries, the states of pods, waits for conditions. If the server
cannot be reached, reads are retried, as in the agent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chronolet.adapters.archive.places import place
from chronolet.history.archives import NodeArchive
from chronolet.history.entries import entries
from chronolet.keeper.policy import Policy as KeeperPolicy
from chronolet.kernel.storage.redis.store import RedisStore
from chronolet.kernel.storage.store import StoreUnreachable
from chronolet.pleg.decider import DECIDER as PLEG
from chronolet.pleg.state import Run
from chronolet.pod.decider import DECIDER
from chronolet.pod.state import State
from chronolet.pod.status.api import PodStatus
from chronolet.pod.status.status import pod_status
from chronolet_schemas import codec, kernel
from chronolet_schemas.envelope import START, Entry, Event
from tests.support import redecided
from tests.support.scratch import hang_limit

E = TypeVar("E", bound=Event)


BATCH = 1000


class Line(NamedTuple):
    """One entry, with its event."""

    entry: Entry
    event: Event


class Journal:
    """The log as read so far, and the states folded from it. Not thread-safe."""

    def __init__(self, url: str, node: str, root: Path | None = None) -> None:
        """`root`: the state folder, to begin with the archived part of a log that is longer than what Redis keeps."""
        self.store = RedisStore(url, node)
        self.has_older_release = False
        """Whether processes of a release that records no inputs have written to the log."""
        self.keeping = KeeperPolicy()
        """The keeper's policy of the processes that have written the log."""
        self.lines: list[Line] = []
        self.undecodable: list[Entry] = []
        self.pods: dict[str, State] = {}
        self._pleg = PLEG.initial
        self._position = START
        archive = NodeArchive(place("", root), node, self.store) if root is not None else None
        for entry in entries(self.store, archive) if archive is not None else ():
            self._add(entry)

    def read(self, milliseconds: int = 0) -> bool:
        """Read new entries; wait up to `milliseconds` if there are none. Return whether the server answered."""
        try:
            arrived = self.store.wait(self._position, {}, BATCH, milliseconds).log
        except StoreUnreachable:
            time.sleep(0.01)  # the server is being restarted
            return False
        for entry in arrived:
            self._add(entry)
        return len(arrived) < BATCH or self.read()

    def catch_up(self) -> None:
        """Read everything that had been sent to the server before this call."""
        for _ in range(2):  # the first answer may precede requests of other clients that the server has not read yet
            deadline = time.monotonic() + hang_limit()
            while not self.read():
                if time.monotonic() > deadline:
                    raise TimeoutError(f"waited {hang_limit():.0f} s for an answer of the server")

    def wait_for(self, what: str, condition: Callable[[], Any], seconds: float = 30) -> Any:
        """Read the log until the condition holds; return the condition's result. It is checked after each read."""
        deadline = time.monotonic() + hang_limit(seconds)
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {hang_limit(seconds):.0f} s for {what}; the log ends with\n{self.tail()}")
            self.read(50)
        return found

    def events(self, kind: type[E], **fields: object) -> list[E]:
        """Return all events of a class with these fields."""
        return [event for event in self._of(kind) if all(getattr(event, name) == fields[name] for name in fields)]

    def wait_for_event(self, kind: type[E], seconds: float = 30, **fields: object) -> E:
        """Return the first event of `kind` with these fields; wait for it if necessary."""
        found: list[E] = self.wait_for(f"{kind.__name__} {fields}", lambda: self.events(kind, **fields), seconds)
        return found[0]

    @property
    def runs(self) -> Mapping[str, Run]:
        """pleg's containers according to the log so far, by id."""
        return self._pleg.containers

    def status(self, pod: str) -> PodStatus | None:
        """Return the pod's PodStatus according to the log so far, or None if there is no such pod."""
        state = self.pods.get(pod)
        return pod_status(state) if state is not None and state.uid else None

    def tail(self, count: int = 15) -> str:
        """Return the last lines, for error messages."""
        return _shown(self.lines[-count:])

    def history(self, words: Collection[str]) -> str:
        """Return all lines that mention any of these words, such as ids, for error messages."""
        return _shown([line for line in self.lines if any(word in repr(line.event) for word in words)])

    def close(self) -> None:
        """Close the connection, and decide the log again, if it is complete: if the server has lost entries, agents may
        have acted on what is no longer there.
        """
        self.store.close()
        entries = [line.entry for line in self.lines]
        complete = [entry.position.n for entry in entries] == list(range(1, len(entries) + 1))
        if complete and not self.events(kernel.TailLost) and not self.events(kernel.LogLost):
            redecided.check_node(entries, skips=self.has_older_release, keeping=self.keeping)

    def _of(self, kind: type[E]) -> Iterator[E]:
        return (line.event for line in self.lines if isinstance(line.event, kind))

    def _add(self, entry: Entry) -> None:
        self._position = entry.position
        try:
            event = codec.decode(entry.type, entry.data, Event)
        except codec.Undecodable:
            self.undecodable.append(entry)
            return
        self.lines.append(Line(entry, event))
        kind, _, key = entry.entity.partition("/")
        if kind == "pleg":
            self._pleg = PLEG.evolve(self._pleg, event) or PLEG.initial
        if kind == "pod":
            state = DECIDER.evolve(self.pods.get(key, DECIDER.initial), event)
            if state is None:
                self.pods.pop(key, None)
            else:
                self.pods[key] = state


def _shown(lines: Sequence[Line]) -> str:
    return "\n".join(f"{line.entry.position} {line.entry.entity} {line.event!r:.300}" for line in lines)
