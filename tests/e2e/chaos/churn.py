"""Pods that come, change and go without end, so that whatever is disturbed is in the middle of everything.

Input: a node, a seed. Output: manifests in its folder, killed processes; at the end, what is wanted. Next: the
tests of this folder disturb what this moves.

The manifests are the phases of a life, each in many pods at a time: starts, init containers, sidecars, hooks, a pull
that fails and backs off, crash loops, completion, ends that are waited for and ends that are forced.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tests.e2e.node import Node, pod, shell

PODS = 12
STAY = 6
_PAUSE_SECONDS = 0.15
_DEAF = "trap '' TERM; while :; do sleep 1; done"

_KINDS: Mapping[str, dict[str, Any]] = {
    "steady": {"containers": [shell("app"), shell("beside")]},
    "loops": {"containers": [shell("app", "sleep 0.2; exit 3"), shell("beside")]},
    "deaf": {"containers": [shell("app", _DEAF)]},
    "once": {"containers": [shell("app", "exit 0")], "restartPolicy": "Never"},
    "sidecar": {
        "initContainers": [shell("prepare", "sleep 0.1"), shell("side", restartPolicy="Always")],
        "containers": [shell("app")],
    },
    "stuck": {"initContainers": [shell("prepare", "exit 1")], "containers": [shell("app")]},
    "pulls": {"containers": [{"name": "app", "image": "localhost:1/none:1"}, shell("beside")]},
}


def _hooked(folder: str) -> dict[str, Any]:
    """Its hooks write a line each, which names the container's very run."""
    line = "echo {} $HOSTNAME $(cut -d' ' -f22 /proc/1/stat) >> /hooks/lines"
    hooks = {name: {"exec": {"command": ["/bin/sh", "-c", line.format(name)]}} for name in ("postStart", "preStop")}
    mount = [{"name": "hooks", "mountPath": "/hooks"}]
    slow = {"postStart": {"sleep": {"seconds": 1}}, "preStop": {"sleep": {"seconds": 1}}}
    return {
        "containers": [shell("app", lifecycle=hooks, volumeMounts=mount), shell("beside", lifecycle=slow)],
        "volumes": [{"name": "hooks", "hostPath": {"path": folder}}],
    }


SETTLES = ("steady", "deaf", "once", "sidecar", "hooked")
"""Kinds that come to rest."""


class Churn:
    """Moves until it is paused. What is written is the wish of that moment. `fetched` is an image whose pull hangs."""

    def __init__(self, node: Node, seed: int, *, fetched: str = "") -> None:
        self._node = node
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        hooks = node.root / "hooks"
        hooks.mkdir()
        self._lines = hooks / "lines"
        self._kinds = {**_KINDS, "hooked": _hooked(str(hooks))}
        if fetched:
            self._kinds["fetches"] = {"containers": [{"name": "app", "image": fetched}, shell("beside")]}
        self.wanted: dict[str, str] = {}
        """Pod -> kind."""
        self.moves = 0
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Some pods run that will be killed now and then, but are never taken away; then it goes."""
        stay = [f"s{number}" for number in range(STAY)]
        for name in stay:
            self._write(name, "steady")
        if "fetches" in self._kinds:
            self._write("f", "fetches")
        self._node.start()
        self._node.wait_until_running(*stay)
        self.go()

    def hooks_run(self) -> int:
        """How many hooks have written their line. Fails for one that wrote it twice."""
        lines = self._lines.read_text().splitlines() if self._lines.exists() else []
        assert len(set(lines)) == len(lines), "a hook ran twice"
        return len(lines)

    def go(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="churn", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Nothing moves any more when this returns."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def settle(self) -> None:
        """The last wish: every pod is of a kind that comes to rest, half of them are gone."""
        self.pause()
        self._remove("f")
        for number in range(PODS):
            if number % 2:
                self._write(f"c{number}", SETTLES[number // 2 % len(SETTLES)])
            else:
                self._remove(f"c{number}")

    def _run(self) -> None:
        try:
            while not self._stop.wait(_PAUSE_SECONDS):
                self.moves += 1
                self._move()
        except BaseException as error:  # noqa: BLE001 - raised where the churn is paused
            self._error = error

    def _move(self) -> None:
        name = f"c{self._random.randrange(PODS)}"
        match self._random.choice(("write", "write", "remove", "kill")):
            case "write":
                self._write(name, self._random.choice(list(self._kinds)))
            case "remove":
                self._remove(name)
            case _:
                self.kill(1)

    def _write(self, name: str, kind: str) -> None:
        spec = dict(self._kinds[kind])
        self._node.write(f"{name}.yaml", pod(name, *spec.pop("containers"), **spec))
        self.wanted[name] = kind

    def _remove(self, name: str) -> None:
        if self.wanted.pop(name, None):
            (self._node.folder / f"{name}.yaml").unlink()

    def kill(self, count: int) -> int:
        """So many containers of any kind, sandboxes too, if there are as many; how many it hit."""
        processes = sorted(self._node.engine.processes().items())
        chosen = self._random.sample(processes, min(count, len(processes)))
        for _, pids in chosen:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return len(chosen)


def moved(node: Node, churn: Churn, *, moves: int, lines: int = 0) -> None:
    """Wait until so much more was done, and the log has grown so much."""
    target, length = churn.moves + moves, len(node.journal.lines) + lines
    node.journal.wait_for("the churn", lambda: churn.moves >= target and len(node.journal.lines) >= length, 60)
