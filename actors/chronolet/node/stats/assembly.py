"""Assembles the sampler and its data sources.

Input: settings, the runtime, `Running`. Output: `Stats`. Next: `node.composition.wiring` passes its samples to the
pages; `main` starts and stops it.
"""

from __future__ import annotations

from pathlib import Path

from chronolet.adapters.cgroup_stats.files import Files
from chronolet.adapters.cgroup_stats.finder import Finder
from chronolet.adapters.cgroup_stats.hierarchies import Hierarchies
from chronolet.adapters.machine import usage
from chronolet.node.composition.shares import sharing
from chronolet.node.settings.table import Settings
from chronolet.node.stats.disk import Disk
from chronolet.node.stats.running import Running
from chronolet.node.stats.sampler import Sampler, StatsSources
from chronolet.node.stats.tracked import Sources
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import Refusal, Runtime

_INSPECT_SECONDS = 2.0


class Stats:
    """The usage sampler, and the thread that measures writable layers."""

    def __init__(self, settings: Settings, runtime: Runtime, running: Running, proc: Path = Path("/proc")) -> None:
        def pid(container_id: str) -> int:
            try:
                found = runtime.inspect(container_id, timeout_seconds=_INSPECT_SECONDS)
            except Refusal:
                return 0
            return found.pid if found is not None and found.state == "running" else 0

        self._disk = Disk(settings.pod_logs, proc)
        finder = Finder(Hierarchies(proc), sharing(settings).root, pid, proc)
        sources = StatsSources(
            running=running,
            sources=Sources(Files(), finder, str(proc)),
            measure=lambda: usage.look(_existing(settings.root_dir), proc),
            list_all=lambda: runtime.list(labels.of_node(settings.node)),
            disk=self._disk,
        )
        self._sampler = Sampler(sources, settings.housekeeping_interval / 1000)
        self.latest = self._sampler.latest

    def start(self) -> None:
        """Start sampling, on one thread, and measuring writable layers, on another."""
        self._sampler.start()
        self._disk.start()

    def stop(self) -> None:
        """Stop both threads, without waiting for the disk thread, and only briefly for the sampler."""
        self._disk.stop()
        self._sampler.stop()


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
