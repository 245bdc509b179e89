"""Docker's share of the time: a bare client makes the calls that any agent must make for a pod.

Input: an engine's socket, images. Output: seconds from the first call to the app's start, from Docker's own event
times, which `agent_bench` also uses for the agent. Next: `pods`, which prints them next to the agent's.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.bench.agent_bench import TRAP, Docker, Watch
from tests.support.docker.images import BUSYBOX, PAUSE

WORKERS = (1, 2, 4, 8, 16)
"""Numbers of workers with which a bare client creates pods concurrently. The fastest number shows the engine's
capacity.
"""
MANY_WORKERS = (4, 8)
"""Numbers of workers for large batches of pods."""
TRAPPED_SECONDS = 0.5
"""Seconds after which an app has installed its SIGTERM handler."""


def warmed_up(host: str) -> Bare:
    """Return a bare client of the engine at `unix://...` that has already created a first pod, which takes longer than
    any other.
    """
    bare = Bare(host.removeprefix("unix://"), PAUSE.reference, BUSYBOX.reference)
    bare.one()
    bare.remove()
    return bare


class Bare:
    """A client that creates pods with bare Docker calls; `remove` removes them."""

    def __init__(self, socket: str, pause: str, image: str) -> None:
        self._docker = Docker(socket)
        self._watch = Watch(self._docker)
        self._watch.start()
        self._watch.ready.wait(10)
        self._pause = pause
        self._image = image
        self._made: list[str] = []
        self._pods: list[tuple[str, str]] = []

    def one(self) -> float:
        """Create and start a sandbox and its app; return the seconds until the app's start."""
        begun = time.time()
        return self._started(self._pod()) - begun

    def batch(self, count: int, workers: int) -> float:
        """Create `count` pods with concurrent workers; return the seconds until the last app's start."""
        begun = time.time()
        with ThreadPoolExecutor(workers) as pool:
            apps = list(pool.map(lambda _: self._pod(), range(count)))
        return max(map(self._started, apps)) - begun

    def stop(self, workers: int) -> float:
        """Stop every app and then its sandbox with SIGTERM; return the seconds until none of them is running."""
        begun = time.time()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(self._stop, self._pods))
        return time.time() - begun

    def stop_one(self) -> float:
        """Stop the last app, and then its sandbox once Docker reports the app's exit; return the seconds until the
        sandbox's exit is reported.
        """
        sandbox, app = self._pods[-1]
        begun = time.time()
        for made in (app, sandbox):
            self._docker.req("POST", f"/containers/{made}/kill?signal=TERM")
            ended = self._event_time("die", made)
        return ended - begun

    def _stop(self, pod: tuple[str, str]) -> None:
        """Stop the app and then its sandbox as an agent does: send a signal, then wait for the exit."""
        for made in reversed(pod):
            self._docker.req("POST", f"/containers/{made}/kill?signal=TERM")
            self._docker.req("POST", f"/containers/{made}/wait?condition=not-running")

    def restarts(self, count: int) -> list[float]:
        """Create and start an app in an existing sandbox, `count` times; return the seconds for each."""
        sandbox = self._run(self._sandbox())
        found = []
        for _ in range(count):
            begun = time.time()
            found.append(self._started(self._run(self._app(sandbox))) - begun)
        return found

    def replacements(self, count: int, grace_seconds: int) -> list[float]:
        """Stop an app with this grace period, and create and start the next one, `count` times; return the seconds for
        each.
        """
        sandbox = self._run(self._sandbox())
        app = self._run(self._app(sandbox))
        found = []
        for _ in range(count):
            time.sleep(TRAPPED_SECONDS)
            begun = time.time()
            status, answer = self._docker.req("POST", f"/containers/{app}/stop?t={grace_seconds}")
            assert status == 204, answer
            app = self._run(self._app(sandbox))
            found.append(self._started(app) - begun)
        return found

    def remove(self) -> None:
        """Remove all containers created so far."""
        with ThreadPoolExecutor(max(MANY_WORKERS)) as pool:
            made, self._made, self._pods = self._made, [], []
            list(pool.map(lambda made_id: self._docker.req("DELETE", f"/containers/{made_id}?force=1&v=1"), made))

    def _pod(self) -> str:
        sandbox = self._run(self._sandbox())
        app = self._run(self._app(sandbox))
        self._pods.append((sandbox, app))
        return app

    def _sandbox(self) -> dict[str, Any]:
        return {"Image": self._pause, "HostConfig": {"NetworkMode": "bridge", "IpcMode": "shareable"}}

    def _app(self, sandbox: str) -> dict[str, Any]:
        joined = f"container:{sandbox}"
        command = ["/bin/sh", "-c", TRAP + "sleep 1000000 & wait"]
        return {"Image": self._image, "Entrypoint": command, "HostConfig": {"NetworkMode": joined, "IpcMode": joined}}

    def _run(self, body: dict[str, Any]) -> str:
        status, answer = self._docker.req("POST", "/containers/create", body)
        assert status == 201, answer
        made = str(json.loads(answer)["Id"])
        self._made.append(made)
        status, answer = self._docker.req("POST", f"/containers/{made}/start")
        assert status == 204, answer
        return made

    def _started(self, container: str) -> float:
        """Return Docker's time of the container's start."""
        return self._event_time("start", container)

    def _event_time(self, action: str, container: str) -> float:
        """Return Docker's time of the container's first event with this action."""

        def those() -> list[dict[str, Any]]:
            return [event for event in self._watch.ev if event["a"] == action and event["id"] == container]

        events = self._watch.wait(those, 30)
        assert events, f"no {action} of {container} was reported"
        return float(events[0]["t"])
