"""Docker's own events for each container, independent of the agent.

Input: a private engine. Output: for each container of a node, by name, its actions in order, and the signals sent to
it. Next: tests compare them with those of other runs and with the log.

Docker drops an event for a subscriber that does not accept it within 100 ms, and if the machine stalls for that long,
even for one with buffer space (pkg/pubsub/publisher.go). But the last 256 events can be queried: DockerEvents does so
once a second, and adds the events that it has missed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import docker

from chronolet.ports.runtime import labels
from tests.support.docker.engine import PrivateDocker
from tests.support.scratch import HANG_SECONDS

_ACTIONS = {"create", "start", "die", "destroy", "pause", "restart", "oom"}
_QUERY_SECONDS = 1.0


class Death(NamedTuple):
    """One death of a container. `at` is in milliseconds, by the engine's clock."""

    id: str
    at: int


class _Event(NamedTuple):
    """One event; two receptions of it compare equal. Sorted by `at`, the engine's time in nanoseconds."""

    at: int
    id: str
    action: str


class DockerEvents:
    """Follows the engine's events from the object's creation until it is closed."""

    def __init__(self, engine: PrivateDocker) -> None:
        self._lock = threading.Lock()
        self._events: dict[str, dict[_Event, Mapping[str, str]]] = {}
        self._engine = engine
        self._closed = threading.Event()
        self._since = int(time.time())
        self._stream = engine.api(timeout=3600).events(decode=True, filters={"type": "container"})
        self._threads = [
            threading.Thread(target=target, name="docker-events", daemon=True)
            for target in (self._follow, self._query_past_events)
        ]
        for thread in self._threads:
            thread.start()

    def actions(self, node: str) -> dict[str, list[str]]:
        """Return each container's actions in order, by container name; `die` includes the exit code."""
        found: dict[str, list[str]] = {}
        for one, attributes in self._of(node):
            if one.action in _ACTIONS:
                word = f"die {attributes['exitCode']}" if one.action == "die" else one.action
                found.setdefault(attributes["name"], []).append(word)
        return found

    def signals(self, node: str) -> set[str]:
        """Return `<name> <signal number>` for every signal sent; repeated signals count once."""
        return {
            f"{attributes['name']} {attributes['signal']}" for one, attributes in self._of(node) if one.action == "kill"
        }

    def deaths(self, node: str) -> list[Death]:
        """Return each death of a container of the node."""
        return [Death(one.id, one.at // 1_000_000) for one, _ in self._of(node) if one.action == "die"]

    def gone(self, node: str) -> bool:
        """Return whether containers were created and all of them are destroyed."""
        found = self.actions(node)
        return bool(found) and all(actions[-1] == "destroy" for actions in found.values())

    def close(self) -> None:
        self._closed.set()
        self._stream.close()
        for thread in self._threads:
            thread.join(HANG_SECONDS)

    def _of(self, node: str) -> list[tuple[_Event, Mapping[str, str]]]:
        with self._lock:
            return sorted(self._events.get(node, {}).items(), key=lambda pair: pair[0])

    def _follow(self) -> None:
        # Closing the stream interrupts a read in progress.
        with contextlib.suppress(docker.errors.DockerException, OSError, ValueError, AttributeError):
            self._add(self._stream)

    def _query_past_events(self) -> None:
        """Query past events periodically, each time starting one second before the previous query."""
        while not self._closed.wait(_QUERY_SECONDS):
            until = int(time.time())
            # A killed engine has lost its events; the next query reads those of the restarted engine.
            with contextlib.suppress(docker.errors.DockerException, OSError), self._engine.api() as api:
                self._add(api.events(since=self._since, until=until, decode=True, filters={"type": "container"}))
                self._since = until - 1

    def _add(self, events: Iterable[Any]) -> None:
        for event in events:
            attributes = event["Actor"]["Attributes"]
            if event["Action"] in _ACTIONS or event["Action"] == "kill":
                seen = _Event(event["timeNano"], event["Actor"]["ID"], event["Action"])
                with self._lock:
                    self._events.setdefault(attributes.get(labels.NODE, ""), {})[seen] = attributes
