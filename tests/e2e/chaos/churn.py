"""Pods that are constantly added, changed and removed, so that each disturbance meets every phase of a pod.

Input: a node, a seed. Output: manifests in the node's folder, killed processes; at the end, the expected pods. Next:
the tests of this folder, which disturb the node at the same time.

The manifests cover many phases at once: starts, init containers, sidecars, hooks, a pull that fails and backs off,
crash loops, completion, graceful and forced ends.
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
STAYING_PODS = 6
_PAUSE_SECONDS = 0.15
_IGNORES_TERM = "trap '' TERM; while :; do sleep 1; done"

_KINDS: Mapping[str, dict[str, Any]] = {
    "steady": {"containers": [shell("app"), shell("other")]},
    "loops": {"containers": [shell("app", "sleep 0.2; exit 3"), shell("other")]},
    "deaf": {"containers": [shell("app", _IGNORES_TERM)]},
    "once": {"containers": [shell("app", "exit 0")], "restartPolicy": "Never"},
    "sidecar": {
        "initContainers": [shell("prepare", "sleep 0.1"), shell("side", restartPolicy="Always")],
        "containers": [shell("app")],
    },
    "stuck": {"initContainers": [shell("prepare", "exit 1")], "containers": [shell("app")]},
    "pulls": {"containers": [{"name": "app", "image": "localhost:1/none:1"}, shell("other")]},
}


def _with_hooks(folder: str) -> dict[str, Any]:
    """Return the spec of a pod whose container `app` has hooks that each write a line which identifies the container's
    run; the hooks of the other container sleep.
    """
    line = "echo {} $HOSTNAME $(cut -d' ' -f22 /proc/1/stat) >> /hooks/lines"
    hooks = {name: {"exec": {"command": ["/bin/sh", "-c", line.format(name)]}} for name in ("postStart", "preStop")}
    mount = [{"name": "hooks", "mountPath": "/hooks"}]
    slow = {"postStart": {"sleep": {"seconds": 1}}, "preStop": {"sleep": {"seconds": 1}}}
    return {
        "containers": [shell("app", lifecycle=hooks, volumeMounts=mount), shell("other", lifecycle=slow)],
        "volumes": [{"name": "hooks", "hostPath": {"path": folder}}],
    }


SETTLES = ("steady", "deaf", "once", "sidecar", "hooked")
"""Kinds of pods that reach a final state."""


class Churn:
    """Changes pods until it is paused. `fetched` is an image for the pods of the additional kind `fetches`. `kills`:
    containers are killed too, including those of other pods.
    """

    def __init__(self, node: Node, seed: int, *, fetched: str = "", kills: bool = True) -> None:
        self._node = node
        self._random = random.Random(seed)
        self._changes = ("write", "write", "remove", "kill")[: 4 if kills else 3]
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        hooks = node.root / "hooks"
        hooks.mkdir()
        self._hook_lines = hooks / "lines"
        self._kinds = {**_KINDS, "hooked": _with_hooks(str(hooks))}
        if fetched:
            self._kinds["fetches"] = {"containers": [{"name": "app", "image": fetched}, shell("other")]}
        self.expected: dict[str, str] = {}
        """The kind of each pod by its name, as last written."""
        self.changes = 0
        self._error: BaseException | None = None

    def start(self) -> None:
        """Start the agent and the pods that the churn may kill but never removes; then begin the churn."""
        stay = [f"s{number}" for number in range(STAYING_PODS)]
        for name in stay:
            self._write(name, "steady")
        if "fetches" in self._kinds:
            self._write("f", "fetches")
        self._node.start()
        self._node.wait_until_running(*stay)
        self.resume()

    def hook_count(self) -> int:
        """Return how many hooks have written their line. Fails if one wrote its line twice."""
        lines = self._hook_lines.read_text().splitlines() if self._hook_lines.exists() else []
        assert len(set(lines)) == len(lines), "a hook ran twice"
        return len(lines)

    def resume(self) -> None:
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="churn", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Stop the churn; no change is made after this returns."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error

    def settle(self) -> None:
        """Pause the churn, remove half of the pods that it changes, and give the other half kinds that reach a final
        state.
        """
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
                self.changes += 1
                self._change()
        except BaseException as error:  # noqa: BLE001 - raised where the churn is paused
            self._error = error

    def _change(self) -> None:
        name = f"c{self._random.randrange(PODS)}"
        match self._random.choice(self._changes):
            case "write":
                self._write(name, self._random.choice(list(self._kinds)))
            case "remove":
                self._remove(name)
            case _:
                self.kill(1)

    def _write(self, name: str, kind: str) -> None:
        spec = dict(self._kinds[kind])
        self._node.write(f"{name}.yaml", pod(name, *spec.pop("containers"), **spec))
        self.expected[name] = kind

    def _remove(self, name: str) -> None:
        if self.expected.pop(name, None):
            (self._node.folder / f"{name}.yaml").unlink()

    def kill(self, count: int) -> int:
        """Kill up to `count` randomly chosen containers, including sandboxes; return the number killed."""
        processes = sorted(self._node.engine.processes().items())
        chosen = self._random.sample(processes, min(count, len(processes)))
        for _, pids in chosen:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return len(chosen)


def wait_for_changes(node: Node, churn: Churn, *, changes: int, lines: int = 0) -> None:
    """Wait for `changes` more changes and `lines` more log entries."""
    target, length = churn.changes + changes, len(node.journal.lines) + lines
    node.journal.wait_for("the churn", lambda: churn.changes >= target and len(node.journal.lines) >= length, 60)
