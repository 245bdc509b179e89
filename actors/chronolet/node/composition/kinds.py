"""Builds the actor kinds of a node, each with the adapters that its workers need.

Input: `Parts`, `Tuning`. Output: the Kinds that this process hosts, by name. Next: `wiring`.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from chronolet.adapters.cgroups import ContainerGroups
from chronolet.adapters.device_plugins.cdi import HostCdi
from chronolet.adapters.http.requests import HttpRequests
from chronolet.adapters.images.builtin import builtin
from chronolet.adapters.images.registry_keys import HostKeyring, docker_folder
from chronolet.adapters.machine.boot import boot_id
from chronolet.adapters.machine.processes import host_processes
from chronolet.adapters.manifest_files import read_documents
from chronolet.adapters.manifest_files.watched_folder import ManifestFolder, NoFolder
from chronolet.adapters.probes.results.segment_files import ArchivedSegments
from chronolet.adapters.state_folder.pod_logs import PodLogFolders
from chronolet.adapters.volumes import HostVolumes
from chronolet.keeper import actor as keeper
from chronolet.keeper.effects import Keeping
from chronolet.keeper.workers.probe_keeping import ProbeKeeping
from chronolet.kernel.effects.pace import Pace, initial_limit
from chronolet.kernel.kind import Kind
from chronolet.kube_events import actor as kube_events
from chronolet.kube_events import effects as kube_events_effects
from chronolet.manifests import actor as manifests
from chronolet.manifests import effects as manifests_effects
from chronolet.node.composition import collectors, event_sinks
from chronolet.node.composition import devices as node_devices
from chronolet.node.composition.indexes import Indexes
from chronolet.node.composition.parts import Parts, agent_version
from chronolet.node.composition.shares import holding
from chronolet.node.metrics.measured_volumes import MeasuredVolumes
from chronolet.node.settings import policies
from chronolet.node.settings.table import Settings
from chronolet.node.tuning import Tuning
from chronolet.pleg import actor as pleg
from chronolet.pleg import effects as pleg_effects
from chronolet.pleg.workers.listings import Ahead
from chronolet.pod import actor as pod
from chronolet.pod import effects as pod_effects
from chronolet.pod.state import SHARDS as POD_SHARDS
from chronolet.pod.workers.images.ensure import Pulls
from chronolet.prober import actor as prober
from chronolet.prober import effects as prober_effects
from chronolet.prober.workers.dependencies import ProberDependencies
from chronolet.qos import actor as qos
from chronolet.qos import effects as qos_effects

HEAD_START_SECONDS = 0.5
"""Maximum time for which the other sandboxes of a batch wait for the first one, so that it starts as fast as a single
pod's.
"""
SHARDS: Mapping[str, int] = {
    "manifests": 1,
    "pod": POD_SHARDS,
    "pleg": 1,
    "prober": prober.SHARDS,
    "container_gc": 1,
    "image_gc": 1,
    "devices": 1,
    "qos": 1,
    "kube_events": 1,
    "keeper": 1,
}
"""The usual shard count of every kind of a node, with which a new log begins (setting `shards`)."""

Run = Callable[[], str]
"""Returns the log's run id, which is known once the process has read the log."""


def kinds(parts: Parts, tuning: Tuning, run: Run) -> dict[str, Kind[Any]]:
    """Build the kinds that the settings select, by name."""
    settings, runtime = parts.settings, parts.runtime
    makers: dict[str, Callable[[], Kind[Any]]] = {
        "manifests": lambda: _manifests(parts),
        "pod": lambda: pod.kind(
            pod_effects.jobs(_pod_dependencies(parts, run), _start_limits(settings)),
            settings.participants,
            policies.pod_policy(settings, platform.machine()),
            policies.back_off_limits(settings),
        ),
        "pleg": lambda: _pleg(parts, run),
        "prober": lambda: prober.kind(
            prober_effects.jobs(
                ProberDependencies(
                    parts.probing,
                    parts.results,
                    parts.metrics.probes,
                    unjudged_limit=settings.probe_unjudged_limit if settings.probe_overload_protection else None,
                )
            )
        ),
        "container_gc": lambda: collectors.container_gc(settings, runtime, run),
        "image_gc": lambda: collectors.image_gc(settings, runtime, parts.images),
        "devices": lambda: node_devices.kind(settings, parts.store, parts.archive, parts.metrics.devices),
        "qos": lambda: qos.kind(qos_effects.jobs(parts.shares)),
        "kube_events": lambda: _kube_events(parts, tuning),
        "keeper": lambda: keeper.kind(_keeping(parts, tuning), policies.keeper_policy(settings, tuning.policy)),
    }
    return {name: makers[name]() for name in settings.actors}


def _manifests(parts: Parts) -> Kind[Any]:
    settings = parts.settings
    rescan = settings.file_check_frequency / 1000
    folder = ManifestFolder(settings.pod_manifest_path, rescan) if settings.pod_manifest_path else NoFolder()
    return manifests.kind(manifests_effects.jobs(folder, settings.node, read_documents, parts.secrets))


def _start_limits(settings: Settings) -> pod_effects.StartLimits:
    def pace(head_start_seconds: float = 0.0) -> Pace:
        return Pace(
            settings.max_parallel_starts,
            first=initial_limit(os.cpu_count() or 1),
            head_start_seconds=head_start_seconds,
        )

    return pod_effects.StartLimits(sandboxes=pace(HEAD_START_SECONDS), creations=pace(), starts=pace())


def _pod_dependencies(parts: Parts, run: Run) -> pod_effects.PodDependencies:
    settings = parts.settings
    return pod_effects.PodDependencies(
        runtime=parts.runtime,
        volumes=MeasuredVolumes(HostVolumes(settings.root_dir), parts.metrics.volumes),
        node=settings.node,
        pause_image=settings.pod_infra_container_image,
        builtin=builtin,
        pulls=Pulls(
            keyring=HostKeyring(docker_folder(os.environ), parts.secrets),
            concurrency=settings.max_concurrent_pulls,
            patience_seconds=settings.image_pull_progress_deadline / 1000,
        ),
        specs=parts.specs,
        requests=HttpRequests(),
        host=parts.host,
        cdi=HostCdi(settings.cdi_spec_dirs),
        logs=PodLogFolders(settings.pod_logs),
        cgroups=ContainerGroups(),
        kills=parts.kills,
        holding=holding(settings, parts.host),
        run=run,
        spans=parts.metrics.spans,
        processes=host_processes(),
    )


def _pleg(parts: Parts, run: Run) -> Kind[Any]:
    settings = parts.settings
    ahead = Ahead(parts.relisted, settings.node)
    jobs = pleg_effects.jobs(
        parts.relisted,
        settings.node,
        steady_seconds=settings.pleg_relist_period / 1000,
        threshold_seconds=settings.pleg_relist_threshold / 1000,
        run=run,
        boot_id=boot_id(),
        endpoint=settings.docker,
        ahead=ahead,
    )
    return pleg.kind(jobs, settings.node, settings.probe_kill_policy, ahead.begin)


def _kube_events(parts: Parts, tuning: Tuning) -> Kind[Any]:
    settings = parts.settings
    sinks = event_sinks.sinks(settings, parts.metrics.requests, tuning.event_call_seconds)
    return kube_events.kind(kube_events_effects.jobs(sinks), policies.event_policy(settings, tuning.event_pause))


def _keeping(parts: Parts, tuning: Tuning) -> Keeping:
    return Keeping(
        store=parts.store,
        archive=parts.archive.current,
        now=_now,
        disk=parts.disk,
        probes=ProbeKeeping(parts.segments, parts.archive.current, ArchivedSegments, parts.store),
        announce=lambda: parts.store.announce(_announcement(parts.settings)),
        measure_seconds=tuning.measure_seconds,
        problem=parts.archive_problem,
        indexed=Indexes(),
    )


def _announcement(settings: Settings) -> str:
    """Return the node's entry in the list of nodes, as JSON."""
    line = {"seen": _now(), "version": agent_version(), "address": settings.http_address}
    return msgspec.json.encode(line).decode()


def _now() -> int:
    return time.time_ns() // 1_000_000
