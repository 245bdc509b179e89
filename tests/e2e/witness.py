"""What the Docker Engine itself says happened to each container, whoever did it.

Input: a private engine. Output: for each container of a node, by name, its actions in order; and the signals that
it was sent. Next: tests compare them, and hold them against the log.

Docker passes over a follower that it cannot tell of an event within 100 ms, and on a machine that stands still for so
long also one that would have had room for it (pkg/pubsub/publisher.go). The last 256 events can be asked for, however:
the witness does so once a second, and notes what it was not told.
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

_LIFE = {"create", "start", "die", "destroy", "pause", "restart", "oom"}
_LOOK_BACK_SECONDS = 1.0


class Death(NamedTuple):
    """One death of a container. `at` in milliseconds, by the engine's clock."""

    id: str
    at: int


class _Seen(NamedTuple):
    """One event, however often it is told. In the order of the engine's clock, nanoseconds."""

    at: int
    id: str
    action: str


class Witness:
    """Follows the engine's events from now on until closed."""

    def __init__(self, engine: PrivateDocker) -> None:
        self._lock = threading.Lock()
        self._events: dict[str, dict[_Seen, Mapping[str, str]]] = {}
        self._engine = engine
        self._closed = threading.Event()
        self._since = int(time.time())
        self._stream = engine.api(timeout=3600).events(decode=True, filters={"type": "container"})
        self._threads = [
            threading.Thread(target=target, name="witness", daemon=True) for target in (self._follow, self._look_back)
        ]
        for thread in self._threads:
            thread.start()

    def lives(self, node: str) -> dict[str, list[str]]:
        """Container name -> its actions; `die` with the exit code."""
        found: dict[str, list[str]] = {}
        for one, said in self._of(node):
            if one.action in _LIFE:
                word = f"die {said['exitCode']}" if one.action == "die" else one.action
                found.setdefault(said["name"], []).append(word)
        return found

    def signals(self, node: str) -> set[str]:
        """`<name> <signal number>` of every signal sent: sent twice is the same signal."""
        return {f"{said['name']} {said['signal']}" for one, said in self._of(node) if one.action == "kill"}

    def deaths(self, node: str) -> list[Death]:
        """Each death of one of its containers."""
        return [Death(one.id, one.at // 1_000_000) for one, _ in self._of(node) if one.action == "die"]

    def gone(self, node: str) -> bool:
        """Whether containers were made and all of them are destroyed."""
        lives = self.lives(node)
        return bool(lives) and all(actions[-1] == "destroy" for actions in lives.values())

    def close(self) -> None:
        self._closed.set()
        self._stream.close()
        for thread in self._threads:
            thread.join(HANG_SECONDS)

    def _of(self, node: str) -> list[tuple[_Seen, Mapping[str, str]]]:
        with self._lock:
            return sorted(self._events.get(node, {}).items(), key=lambda pair: pair[0])

    def _follow(self) -> None:
        # What is read when the stream is closed under its reader is nobody's business.
        with contextlib.suppress(docker.errors.DockerException, OSError, ValueError, AttributeError):
            self._note(self._stream)

    def _look_back(self) -> None:
        """What is over, of the time since the last look and the second before that."""
        while not self._closed.wait(_LOOK_BACK_SECONDS):
            until = int(time.time())
            # An engine that is killed has forgotten it; the next look finds what its successor has to say.
            with contextlib.suppress(docker.errors.DockerException, OSError), self._engine.api() as api:
                self._note(api.events(since=self._since, until=until, decode=True, filters={"type": "container"}))
                self._since = until - 1

    def _note(self, events: Iterable[Any]) -> None:
        for event in events:
            said = event["Actor"]["Attributes"]
            if event["Action"] in _LIFE or event["Action"] == "kill":
                seen = _Seen(event["timeNano"], event["Actor"]["ID"], event["Action"])
                with self._lock:
                    self._events.setdefault(said.get(labels.NODE, ""), {})[seen] = said
