"""What the Docker Engine itself says happened to each container, whoever did it.

Comes in: a private engine. Goes out: for each container of a node, by name, its actions in order; and the signals that
it was sent. Next: tests compare them, and hold them against the log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import docker

from chronolet.ports import labels
from tests.support.docker import PrivateDocker

_LIFE = {"create", "start", "die", "destroy", "pause", "restart", "oom"}


class Witness:
    """Follows the engine's events from now on until closed. An engine that is restarted is followed again."""

    def __init__(self, engine: PrivateDocker) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._lives: dict[str, dict[str, list[str]]] = {}
        self._signals: dict[str, set[str]] = {}
        self._since = time.time()
        self._closing = False
        self._stream: Any = None
        self._following = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()
        assert self._following.wait(10), "no event stream"

    def lives(self, node: str) -> dict[str, list[str]]:
        """Container name -> its actions; `die` with the exit code."""
        with self._lock:
            return {name: list(actions) for name, actions in self._lives.get(node, {}).items()}

    def signals(self, node: str) -> set[str]:
        """`<name> <signal number>` of every signal sent: sent twice is the same signal."""
        with self._lock:
            return set(self._signals.get(node, ()))

    def gone(self, node: str) -> bool:
        """Whether containers were made and all of them are destroyed."""
        lives = self.lives(node)
        return bool(lives) and all(actions[-1] == "destroy" for actions in lives.values())

    def close(self) -> None:
        self._closing = True
        if self._stream is not None:
            self._stream.close()
        self._thread.join(5)

    def _run(self) -> None:
        while not self._closing:
            try:
                self._follow(self._engine.api(timeout=600))
            except (docker.errors.DockerException, OSError, ValueError):
                if not self._closing:
                    time.sleep(0.05)  # the engine is being started again

    def _follow(self, api: docker.APIClient) -> None:
        self._stream = api.events(since=self._since, decode=True, filters={"type": "container"})
        self._following.set()
        for event in self._stream:
            self._since = event["timeNano"] / 1e9 + 1e-6
            with self._lock:
                self._note(event["Action"], event["Actor"]["Attributes"])

    def _note(self, action: str, said: Mapping[str, str]) -> None:
        node = said.get(labels.NODE, "")
        if action == "kill":
            self._signals.setdefault(node, set()).add(f"{said['name']} {said['signal']}")
        elif action in _LIFE:
            word = f"die {said['exitCode']}" if action == "die" else action
            self._lives.setdefault(node, {}).setdefault(said["name"], []).append(word)
