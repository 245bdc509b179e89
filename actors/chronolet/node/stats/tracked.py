"""Tracks one pod over many sampling rounds: the location and last usage of its cgroups.

Input: the pod's running containers. Output: `PodSample`. Next: `sampler`. If a cgroup's CPU time and memory are the
same as at its last reading, and its pressure averages are zero, it counts as unchanged, together with the cgroups in
it: their files are not read again until `_ALL_ROUNDS` have passed. For a busy pod, CPU time and memory are read in
every round, I/O, threads and pressure in every fourth, limits in every eighth. A nearly idle pod is skipped in every
other round.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import attrgetter

from msgspec.structs import replace

from chronolet.adapters.cgroup_stats.files import Files
from chronolet.adapters.cgroup_stats.finder import Finder
from chronolet.adapters.cgroup_stats.hierarchies import Folders
from chronolet.adapters.cgroup_stats.reader import Depth, Reader
from chronolet.adapters.machine.net_dev import parsed
from chronolet.node.stats.samples import ContainerSample, Measured, PodSample, rate
from chronolet.ports.machine.usage import Interface, Usage
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState
from chronolet.rules.names.names import SANDBOX

_MORE_ROUNDS, _ALL_ROUNDS = 4, 8
"""Numbers of rounds after which I/O, threads, OOM kills and pressure, and after which all values, are read again. Both
are even, because pods may be skipped in odd rounds.
"""
_LITTLE_NANO_CORES = 10_000_000
_LONGEST_REST_ROUNDS = 64


class Sources:
    """The data sources of tracked pods. Used by one thread at a time."""

    def __init__(self, files: Files, finder: Finder, proc: str = "/proc") -> None:
        self.files = files
        self.reader = Reader(files)
        self.finder = finder
        self.proc = proc


class _Cgroup:
    """One cgroup with its last usage."""

    def __init__(self, folders: Folders, *, is_pod: bool = False, is_sandbox: bool = False) -> None:
        self.folders = folders
        self.is_pod = is_pod
        self.is_sandbox = is_sandbox
        self.measured: Measured | None = None
        self.is_broken = False
        self.pid = 0

    def read(self, sources: Sources, depth: Depth) -> None:
        """Read the cgroup; `measured` becomes None if the cgroup no longer exists. Raises ValueError if its files
        cannot be parsed.
        """
        last = self.measured.usage if self.measured is not None else None
        found = sources.reader.usage(self.folders, last, depth=depth, is_pod=self.is_pod)
        if found is None:
            self.measured = None
        else:
            self._take(found)

    def is_unchanged(self, sources: Sources) -> bool:
        """Return whether the usage is the same as at the last reading, and all pressure averages have decayed."""
        if self.measured is None or not self.measured.usage.pressures.is_calm:
            return False
        last = self.measured.usage
        try:
            return sources.reader.counters(self.folders) == (last.cpu_nanoseconds, last.memory_bytes)
        except ValueError:
            return False

    def restamp(self, at: int) -> None:
        """Repeat the last usage with a new timestamp."""
        if self.measured is not None:
            self._take(replace(self.measured.usage, at=at))

    def _take(self, usage: Usage) -> None:
        before = self.measured.usage if self.measured is not None else None
        self.measured = Measured(usage, rate(before, usage), self.folders.path)


class _Missing:
    """A container whose cgroup was not found. The search is retried with an exponential back-off, counted in rounds."""

    def __init__(self) -> None:
        self.attempts = 0
        self.rest = 0

    def is_due(self) -> bool:
        self.rest -= 1
        return self.rest < 0

    def failed(self) -> None:
        self.rest = min(1 << self.attempts, _LONGEST_REST_ROUNDS)
        self.attempts += 1


class TrackedPod:
    """One pod's cgroups and last sample. Used by one thread at a time."""

    def __init__(self, uid: str, offset: int = 0) -> None:
        self._uid = uid
        self._round = offset
        self._whole: _Cgroup | None = None
        self._cgroups: dict[str, _Cgroup] = {}
        self._missing: dict[str, _Missing] = {}
        self._ids: frozenset[str] = frozenset()
        self._last: PodSample | None = None

    @property
    def errors(self) -> int:
        """Number of cgroups whose files could not be parsed when they were last read."""
        return sum(one.is_broken for one in (*self._cgroups.values(), self._whole) if one is not None)

    def sample(self, containers: Sequence[ContainerState], sources: Sources) -> PodSample | None:
        """Sample the pod; in every other round, return its previous sample if it is nearly idle. Returns None if no
        container has a cgroup.
        """
        self._round += 1
        ids = frozenset(one.id for one in containers)
        if self._round % 2 and ids == self._ids and self._is_nearly_idle():
            return self._last
        self._ids = ids
        self._forget(ids)
        fresh = [one for one in containers if one.id not in self._cgroups and self._find(one, sources)]
        depth = self._depth()
        if fresh or depth is Depth.ALL or not self._is_unchanged(sources):
            self._read_all(sources, depth)
        self._last = self._sampled(containers, sources)
        return self._last

    def sample_new(self, containers: Sequence[ContainerState], sources: Sources) -> PodSample | None:
        """Sample, between rounds, the containers started since the last round, and the pod's own cgroup; other
        containers keep their last usage. Returns None if no container has a cgroup.
        """
        for one in containers:
            if one.id not in self._cgroups and self._find(one, sources):
                _read(self._cgroups[one.id], sources, Depth.ALL)
                if self._whole is not None:
                    _read(self._whole, sources, Depth.LEAST)
        return self._sampled(containers, sources)

    def pids(self) -> dict[str, int]:
        """Return the pid of one process of each sampled container, by container id."""
        return {container_id: one.pid for container_id, one in self._cgroups.items() if one.pid}

    def _is_nearly_idle(self) -> bool:
        """Return whether the pod used little CPU between its last two samples; False before the second sample."""
        measured = self._whole.measured if self._whole is not None else None
        return measured is not None and measured.nano_cores is not None and measured.nano_cores < _LITTLE_NANO_CORES

    def _forget(self, kept: frozenset[str]) -> None:
        self._cgroups = {one: cgroup for one, cgroup in self._cgroups.items() if one in kept}
        self._missing = {one: missing for one, missing in self._missing.items() if one in kept}

    def _find(self, container: ContainerState, sources: Sources) -> bool:
        missing = self._missing.get(container.id)
        if missing is not None and not missing.is_due():
            return False
        folders = sources.finder.container(self._uid, container.id)
        if folders is None:
            self._missing.setdefault(container.id, _Missing()).failed()
            return False
        self._missing.pop(container.id, None)
        is_sandbox = container.labels.get(labels.CONTAINER_NAME) == SANDBOX
        self._cgroups[container.id] = _Cgroup(folders, is_sandbox=is_sandbox)
        above = sources.finder.pod(folders)
        if above is None:
            self._whole = None
        elif self._whole is None or self._whole.folders.path != above.path:
            self._whole = _Cgroup(above, is_pod=True)
        return True

    def _is_unchanged(self, sources: Sources) -> bool:
        """Return whether the pod's cgroup, which includes its containers, is unchanged; if so, update the timestamps of
        the last usages.
        """
        whole = self._whole
        if whole is None or not whole.is_unchanged(sources):
            return False
        at = _now()
        for one in (*self._cgroups.values(), whole):
            one.restamp(at)
        return True

    def _depth(self) -> Depth:
        if self._round % _ALL_ROUNDS == 0:
            return Depth.ALL
        return Depth.MORE if self._round % _MORE_ROUNDS == 0 else Depth.LEAST

    def _read_all(self, sources: Sources, depth: Depth) -> None:
        """Read the containers, then the pod's own cgroup, so that a pod's usage is never below its containers' sum."""
        for one in self._cgroups.values():
            if one.is_sandbox and self._can_skip(one, sources, depth):
                one.restamp(_now())
            else:
                _read(one, sources, depth)
        if self._whole is not None:
            _read(self._whole, sources, depth)
            if self._whole.measured is None and not self._whole.is_broken:
                for one in self._cgroups.values():
                    one.measured = None

    def _can_skip(self, sandbox: _Cgroup, sources: Sources, depth: Depth) -> bool:
        """Return whether to skip reading a sandbox: it is always idle, so it is rarely read if the pod has its own
        cgroup.
        """
        if sandbox.measured is None or self._whole is None:
            return False
        return depth is not Depth.ALL or sandbox.is_unchanged(sources)

    def _sampled(self, containers: Sequence[ContainerState], sources: Sources) -> PodSample | None:
        found = []
        for one in sorted(containers, key=attrgetter("created_at")):
            cgroup = self._cgroups.get(one.id)
            if cgroup is not None and cgroup.measured is not None:
                found.append(ContainerSample(one, cgroup.measured))
        if not found:
            return None
        whose = found[-1].container.labels
        sandbox = next((one for one in reversed(found) if one.is_sandbox), None)
        return PodSample(
            namespace=whose.get(labels.POD_NAMESPACE, ""),
            name=whose.get(labels.POD_NAME, ""),
            uid=self._uid,
            sandbox=self._networked(sandbox, sources) if sandbox is not None else None,
            containers=tuple(sorted((one for one in found if not one.is_sandbox), key=attrgetter("name"))),
            whole=self._whole.measured if self._whole is not None else None,
        )

    def _networked(self, sandbox: ContainerSample, sources: Sources) -> ContainerSample:
        """Add the pod's network interfaces; a pod on the host's network has none of its own."""
        pid = self._cgroups[sandbox.container.id].pid
        if sandbox.container.host_network or not pid:
            return sandbox
        measured = sandbox.measured
        usage = replace(measured.usage, interfaces=_interfaces(sources, pid))
        return sandbox._replace(measured=measured._replace(usage=usage))


def _read(one: _Cgroup, sources: Sources, depth: Depth) -> None:
    try:
        one.read(sources, depth)
        one.is_broken = False
        if not one.is_pod and not one.pid:
            one.pid = sources.reader.first_process(one.folders)
    except ValueError:
        one.is_broken = True
        one.measured = None


def _interfaces(sources: Sources, pid: int) -> tuple[Interface, ...]:
    text = sources.files.read(f"{sources.proc}/{pid}/net/dev")
    try:
        return parsed(text.decode("ascii", "replace")) if text else ()
    except ValueError:
        return ()


def _now() -> int:
    return time.time_ns() // 1_000_000
