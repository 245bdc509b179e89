"""What Docker itself takes: the calls that any agent has to make for a pod, made with nothing around them.

Comes in: an engine's socket, images. Goes out: seconds from the first call to the app's start, by Docker's own event
times, as `agent_bench` takes them for the agent. Next: `pods`, which prints them beside the agent's.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.bench.agent_bench import TRAP, Docker, Watch

WORKERS = 8


class Bare:
    """Pods by bare calls; `remove` takes away what was made."""

    def __init__(self, socket: str, pause: str, image: str) -> None:
        self._docker = Docker(socket)
        self._watch = Watch(self._docker)
        self._watch.start()
        self._watch.ready.wait(10)
        self._pause = pause
        self._image = image
        self._made: list[str] = []

    def one(self) -> float:
        """Sandbox and app, created and started one after the other: seconds to the app's start."""
        begun = time.time()
        return self._started(self._pod()) - begun

    def batch(self, count: int) -> float:
        """So many pods at once by eight workers: seconds to the last app's start."""
        begun = time.time()
        with ThreadPoolExecutor(WORKERS) as pool:
            apps = list(pool.map(lambda _: self._pod(), range(count)))
        return max(map(self._started, apps)) - begun

    def restarts(self, count: int) -> list[float]:
        """An app created and started in a sandbox that is there, so many times: seconds each."""
        sandbox = self._run(self._sandbox())
        found = []
        for _ in range(count):
            begun = time.time()
            found.append(self._started(self._run(self._app(sandbox))) - begun)
        return found

    def remove(self) -> None:
        """Everything made so far."""
        with ThreadPoolExecutor(WORKERS) as pool:
            made, self._made = self._made, []
            list(pool.map(lambda made_id: self._docker.req("DELETE", f"/containers/{made_id}?force=1&v=1"), made))

    def _pod(self) -> str:
        return self._run(self._app(self._run(self._sandbox())))

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
        """When Docker says it started."""

        def starts() -> list[dict[str, Any]]:
            return [event for event in self._watch.ev if event["a"] == "start" and event["id"] == container]

        events = self._watch.wait(starts, 30)
        assert events, f"no start of {container} was told"
        return float(events[0]["t"])
