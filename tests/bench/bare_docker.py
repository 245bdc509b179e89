"""What Docker itself takes: the calls that any agent has to make for a pod, made with nothing around them.

Input: an engine's socket, images. Output: seconds from the first call to the app's start, by Docker's own event
times, as `agent_bench` takes them for the agent. Next: `pods`, which prints them beside the agent's.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.bench.agent_bench import TRAP, Docker, Watch
from tests.support.docker.images import BUSYBOX, PAUSE

WORKERS = (1, 2, 4, 8, 16)
"""How many pods a bare client makes at a time; the best of them is what the engine can do."""
MANY_WORKERS = (4, 8)
"""For batches that one worker would take too long for."""
TRAPPED_SECONDS = 0.5
"""By then an app has its handler of TERM."""


def warmed_up(host: str) -> Bare:
    """For the engine at `unix://...`, whose first pod, which takes longer than any other, has come and gone."""
    bare = Bare(host.removeprefix("unix://"), PAUSE.reference, BUSYBOX.reference)
    bare.one()
    bare.remove()
    return bare


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
        self._pods: list[tuple[str, str]] = []

    def one(self) -> float:
        """Sandbox and app, created and started one after the other: seconds to the app's start."""
        begun = time.time()
        return self._started(self._pod()) - begun

    def batch(self, count: int, workers: int) -> float:
        """So many pods at once by so many workers: seconds to the last app's start."""
        begun = time.time()
        with ThreadPoolExecutor(workers) as pool:
            apps = list(pool.map(lambda _: self._pod(), range(count)))
        return max(map(self._started, apps)) - begun

    def stop(self, workers: int) -> float:
        """TERM for every app made so far, then for its sandbox: seconds until nothing runs any more."""
        begun = time.time()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(self._stop, self._pods))
        return time.time() - begun

    def stop_one(self) -> float:
        """TERM for the app made last, and for its sandbox when Docker has told of the app's end: seconds until Docker
        tells of the sandbox's end.
        """
        sandbox, app = self._pods[-1]
        begun = time.time()
        for made in (app, sandbox):
            self._docker.req("POST", f"/containers/{made}/kill?signal=TERM")
            ended = self._told("die", made)
        return ended - begun

    def _stop(self, pod: tuple[str, str]) -> None:
        """As an agent does it: a signal, then the wait for the end; the app before its sandbox."""
        for made in reversed(pod):
            self._docker.req("POST", f"/containers/{made}/kill?signal=TERM")
            self._docker.req("POST", f"/containers/{made}/wait?condition=not-running")

    def restarts(self, count: int) -> list[float]:
        """An app created and started in a sandbox that is there, so many times: seconds each."""
        sandbox = self._run(self._sandbox())
        found = []
        for _ in range(count):
            begun = time.time()
            found.append(self._started(self._run(self._app(sandbox))) - begun)
        return found

    def replacements(self, count: int, grace_seconds: int) -> list[float]:
        """An app stopped with that grace period, and the next one created and started, so many times: seconds each."""
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
        """Everything made so far."""
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
        """When Docker says it started."""
        return self._told("start", container)

    def _told(self, action: str, container: str) -> float:
        """When Docker says that happened."""

        def those() -> list[dict[str, Any]]:
            return [event for event in self._watch.ev if event["a"] == action and event["id"] == container]

        events = self._watch.wait(those, 30)
        assert events, f"no {action} of {container} was told"
        return float(events[0]["t"])
