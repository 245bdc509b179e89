"""Measures the disk usage of containers: the size of each log at every sample, and the size of each writable layer by a
slow walk through its files.

Input: sampled pods, a process of each container. Output: the same pods with sizes; the file system of the layers.
Next: `sampler`. Docker is not involved: a layer is found through the root mount of the container's process. Corresponds
to cAdvisor's container/common/fsHandler.go.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from chronolet.adapters.machine.disk_use import file_system, measured, upper_layer
from chronolet.node.stats.samples import ContainerSample, PodSample
from chronolet.ports.machine.usage import DiskUse, FileSystem
from chronolet.ports.pods.pod_logs import folder_of
from chronolet.ports.runtime import labels

WALK_SECONDS = 60.0
_FIRST_SECONDS = 5.0
_WORK_SECONDS = 0.005
_REST_RATIO = 20
"""Ratio of each pause to the work before it, so that a walk uses at most a twentieth of a processor."""
_PAUSE_SECONDS = 0.05
_MOST_INODES = 200_000


class _Layer(NamedTuple):
    """A container's writable layer; `use` is None if it could not be measured."""

    folder: str
    use: DiskUse | None = None


class Disk:
    """Measures logs and writable layers. Usable from any thread. `logs`: the folder with the pods' logs."""

    def __init__(self, logs: Path, proc: Path = Path("/proc")) -> None:
        self._logs = str(logs)
        self._proc = proc
        self._lock = threading.Lock()
        self._pids: dict[str, int] = {}
        self._layers: dict[str, _Layer] = {}
        self._images: FileSystem | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="disk use", daemon=True)

    def start(self) -> None:
        """Start a thread that measures all layers, with a pause of WALK_SECONDS after each walk."""
        self._thread.start()

    def stop(self) -> None:
        """Signal the thread to end, without waiting for it."""
        self._over.set()

    def added(self, pod: PodSample, pids: Mapping[str, int]) -> PodSample:
        """Return the pod with the sizes that are known so far. `pids`: a process of each container, by container id,
        through which later walks find its layer.
        """
        with self._lock:
            self._pids |= pids
        sandbox = pod.sandbox and self._sized(pod, pod.sandbox)
        return pod._replace(sandbox=sandbox, containers=tuple(self._sized(pod, one) for one in pod.containers))

    def keep(self, running: Mapping[str, object]) -> None:
        """Forget all containers that are not in `running`."""
        with self._lock:
            self._pids = {one: pid for one, pid in self._pids.items() if one in running}
            self._layers = {one: layer for one, layer in self._layers.items() if one in running}

    def images(self) -> FileSystem | None:
        """Return the file system that containers write to; None until a walk has measured a layer."""
        return self._images

    def walk(self) -> None:
        """Measure every layer once; return early after `stop`."""
        with self._lock:
            pids = dict(self._pids)
        began, found = time.monotonic(), ""
        for container_id, pid in pids.items():
            found = self._walk_one(container_id, pid) or found
            spent = time.monotonic() - began
            if spent > _WORK_SECONDS:
                if self._over.wait(_REST_RATIO * spent):
                    return
                began = time.monotonic()
        if found:
            self._images = file_system(found, self._proc)

    def _walk_one(self, container_id: str, pid: int) -> str:
        """Measure a container's writable layer and return its folder; empty if it could not be measured."""
        known = self._layers.get(container_id)
        folder = known.folder if known else upper_layer(pid, self._proc)
        use = measured(folder, lambda: self._over.wait(_PAUSE_SECONDS), _MOST_INODES) if folder else None
        with self._lock:
            if container_id in self._pids:
                self._layers[container_id] = _Layer(folder, use)
        return folder if use is not None else ""

    def _run(self) -> None:
        pause = _FIRST_SECONDS
        while not self._over.wait(pause):
            self.walk()
            pause = WALK_SECONDS

    def _sized(self, pod: PodSample, one: ContainerSample) -> ContainerSample:
        layer = self._layers.get(one.container.id)
        return one._replace(layer=layer.use if layer else None, log_bytes=self._log_bytes(pod, one))

    def _log_bytes(self, pod: PodSample, one: ContainerSample) -> int | None:
        """Return the size of Docker's log file, found through the link in the pod's log folder; None if it cannot be
        read.
        """
        attempt = one.container.labels.get(labels.ATTEMPT, "0")
        folder = folder_of(f"{pod.namespace}/{pod.name}", pod.uid)
        try:
            return os.stat(f"{self._logs}/{folder}/{one.name}/{attempt}.log").st_size  # noqa: PTH116 - a str is enough
        except OSError:
            return None
