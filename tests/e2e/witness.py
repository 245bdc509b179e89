"""What the Docker Engine itself says happened to each container, whoever did it.

Comes in: a private engine. Goes out: for each container of a node, by name, its actions in order; and the signals that
it was sent. Next: tests compare them, and hold them against the log.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import docker

from chronolet.ports import labels
from tests.e2e.node import BUSYBOX
from tests.support.docker import PrivateDocker
from tests.support.scratch import HANG_SECONDS, wait_until

_MARK = "witness"
"""The label of containers that only mark a moment in the stream."""
_LIFE = {"create", "start", "die", "destroy", "pause", "restart", "oom"}


class Death(NamedTuple):
    """One death of a container. `at` in milliseconds, by the engine's clock."""

    id: str
    at: int


class Witness:
    """Follows the engine's events from now on until closed."""

    def __init__(self, engine: PrivateDocker) -> None:
        self._lock = threading.Lock()
        self._lives: dict[str, dict[str, list[str]]] = {}
        self._signals: dict[str, set[str]] = {}
        self._deaths: dict[str, list[Death]] = {}
        self._engine = engine
        self._marks = itertools.count(1)
        self._passed: set[str] = set()
        self._stream = engine.api(timeout=3600).events(decode=True, filters={"type": "container"})
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def lives(self, node: str) -> dict[str, list[str]]:
        """Container name -> its actions; `die` with the exit code."""
        with self._lock:
            return {name: list(actions) for name, actions in self._lives.get(node, {}).items()}

    def signals(self, node: str) -> set[str]:
        """`<name> <signal number>` of every signal sent: sent twice is the same signal."""
        with self._lock:
            return set(self._signals.get(node, ()))

    def deaths(self, node: str) -> list[Death]:
        """Each death of one of its containers."""
        with self._lock:
            return list(self._deaths.get(node, ()))

    def gone(self, node: str) -> bool:
        """Whether containers were made and all of them are destroyed."""
        lives = self.lives(node)
        return bool(lives) and all(actions[-1] == "destroy" for actions in lives.values())

    def catch_up(self) -> None:
        """Return when all is noted that happened before this was called."""
        mark = f"{id(self)}-{next(self._marks)}"
        with contextlib.closing(self._engine.api(round(HANG_SECONDS))) as api:
            made = api.create_container(BUSYBOX, ["true"], labels={_MARK: mark})["Id"]
            api.remove_container(made)
        wait_until(lambda: mark in self._passed, "the witness to have noted all events so far")

    def close(self) -> None:
        self._stream.close()
        self._thread.join(HANG_SECONDS)

    def _run(self) -> None:
        # What is read when the stream is closed under its reader is nobody's business.
        with contextlib.suppress(docker.errors.DockerException, OSError, ValueError, AttributeError):
            for event in self._stream:
                with self._lock:
                    self._note(event["Action"], event["Actor"]["Attributes"])
                    if event["Action"] == "die":
                        self._note_death(event)

    def _note(self, action: str, said: Mapping[str, str]) -> None:
        if _MARK in said:
            self._passed.add(said[_MARK])
            return
        node = said.get(labels.NODE, "")
        if action == "kill":
            self._signals.setdefault(node, set()).add(f"{said['name']} {said['signal']}")
        elif action in _LIFE:
            word = f"die {said['exitCode']}" if action == "die" else action
            self._lives.setdefault(node, {}).setdefault(said["name"], []).append(word)

    def _note_death(self, event: Mapping[str, Any]) -> None:
        node = event["Actor"]["Attributes"].get(labels.NODE, "")
        death = Death(event["Actor"]["ID"], event["timeNano"] // 1_000_000)
        self._deaths.setdefault(node, []).append(death)
