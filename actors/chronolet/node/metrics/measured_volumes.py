"""A wrapper that times operations on the volumes of pods.

Input: calls from the pod's workers. Output: the same calls to the volumes' adapter. Next: `volumes`, which has the
metrics.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec.structs import replace

from chronolet.node.metrics.volumes import ALL_PLUGINS, VolumeMetrics, plugin
from chronolet.ports.pods.volumes import PodVolumes, SubPath, Volumes


class MeasuredVolumes:
    """Implements `ports.pods.volumes.Volumes`: forwards all calls to `volumes` and records metrics."""

    def __init__(self, volumes: Volumes, metrics: VolumeMetrics) -> None:
        self._volumes = volumes
        self._metrics = metrics

    def prepare(self, wanted: PodVolumes) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for one in wanted.volumes:
            with self._timed("volume_mount", plugin(one)):
                found |= self._volumes.prepare(replace(wanted, volumes=(one,)))
        return found

    def sub_path(self, part: SubPath) -> str:
        return self._volumes.sub_path(part)

    def remove(self, uid: str) -> None:
        with self._timed("volume_unmount", ALL_PLUGINS):
            self._volumes.remove(uid)

    def last_words_file(self, uid: str, container: str, attempt: int) -> str:
        return self._volumes.last_words_file(uid, container, attempt)

    def last_words(self, uid: str, container: str, attempt: int, limit: int) -> bytes:
        return self._volumes.last_words(uid, container, attempt, limit)

    def pod_file(self, uid: str, name: str, content: str | None) -> str:
        return self._volumes.pod_file(uid, name, content)

    @contextmanager
    def _timed(self, operation: str, plugin_name: str) -> Iterator[None]:
        began = time.monotonic()
        failed = True
        try:
            yield
            failed = False
        finally:
            self._metrics.operated(operation, plugin_name, time.monotonic() - began, failed=failed)
